//! `declare_events!`: makes everything that an event needs from its entry in the table.

/// Declares all events. From each entry come the payload struct, its [`Event`](super::Event)
/// implementation, its line in [`EVENTS`](super::EVENTS) and, for a notification, its variant of
/// [`AgentEvent`](super::AgentEvent).
///
/// An entry is the description, the name on the wire, and the payload:
///
/// ```text
/// /// A turn begins.
/// "turn_start" => TurnStart {
///     /// Number of the turn within the run, from 1.
///     pub turn: u32,
/// }
/// ```
///
/// A question has a reply besides, and what a handler may answer in a few words.
macro_rules! declare_events {
    (
        notifications { $(
            $(#[doc = $notification_doc:literal])+
            $notification_name:literal => $notification:ident $notification_body:tt
        )+ }
        questions { $(
            $(#[doc = $question_doc:literal])+
            $question_name:literal => $question:ident $question_body:tt -> $reply:ty = $answer:literal;
        )+ }
    ) => {
        $( payload! { [$(#[doc = $notification_doc])+] $notification $notification_body } )+
        $( payload! { [$(#[doc = $question_doc])+] $question $question_body } )+

        $( impl Event for $notification {
            const NAME: &'static str = $notification_name;
            type Reply = ();
        } )+
        $( impl Event for $question {
            const NAME: &'static str = $question_name;
            type Reply = $reply;
        } )+

        /// Something that happened, as faces receive it. As JSON it is an object with the event's
        /// name in `type` and its fields beside it.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum AgentEvent { $(
            $(#[doc = $notification_doc])+
            #[serde(rename = $notification_name)]
            $notification($notification),
        )+ }

        impl AgentEvent {
            /// The event's name: `type` in JSON.
            pub fn name(&self) -> &'static str {
                match self { $( AgentEvent::$notification(_) => $notification_name, )+ }
            }

            /// The payload, if the event is of this type.
            pub fn payload<E: Event<Reply = ()>>(&self) -> Option<&E> {
                let payload: &dyn Any = match self { $( AgentEvent::$notification(payload) => payload, )+ };
                payload.downcast_ref()
            }
        }

        $( impl From<$notification> for AgentEvent {
            fn from(payload: $notification) -> Self {
                AgentEvent::$notification(payload)
            }
        } )+

        /// All events: first those that faces receive, then those that handlers answer.
        pub const EVENTS: &[EventInfo] = &[
            $( EventInfo {
                name: $notification_name,
                description: concat!($($notification_doc, "\n"),+),
                answer: None,
                payload_schema: |generator| generator.subschema_for::<$notification>(),
                reply_schema: |generator| generator.subschema_for::<()>(),
            }, )+
            $( EventInfo {
                name: $question_name,
                description: concat!($($question_doc, "\n"),+),
                answer: Some($answer),
                payload_schema: |generator| generator.subschema_for::<$question>(),
                reply_schema: |generator| generator.subschema_for::<$reply>(),
            }, )+
        ];
    };
}

/// Declares the struct of a payload, with fields or as a wrapper of another type.
macro_rules! payload {
    ([$($doc:tt)+] $name:ident { $($fields:tt)* }) => {
        $($doc)+
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        pub struct $name { $($fields)* }
    };
    ([$($doc:tt)+] $name:ident ( $($inner:tt)* )) => {
        $($doc)+
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        pub struct $name( $($inner)* );
    };
}

pub(super) use {declare_events, payload};
