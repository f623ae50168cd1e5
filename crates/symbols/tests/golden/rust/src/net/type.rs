pub(super) struct Kind;
