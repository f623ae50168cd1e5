//! The macros that make everything that an event needs from its entry.

/// Declares the notifications. From each entry come the payload struct, its [`Event`](super::Event)
/// implementation, its line in [`EVENTS`](super::EVENTS) and its variant of
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
macro_rules! declare_notifications {
    ( $(
        $(#[doc = $doc:literal])+
        $name:literal => $notification:ident $body:tt
    )+ ) => {
        $( payload! { [$(#[doc = $doc])+] $notification $body } )+

        $( impl Event for $notification {
            const NAME: &'static str = $name;
            type Reply = ();
        } )+

        /// Something that happened, as faces receive it. As JSON it is an object with the event's
        /// name in `type` and its fields beside it.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum AgentEvent { $(
            $(#[doc = $doc])+
            #[serde(rename = $name)]
            $notification($notification),
        )+ }

        impl AgentEvent {
            /// The event's name: `type` in JSON.
            pub fn name(&self) -> &'static str {
                match self { $( AgentEvent::$notification(_) => $name, )+ }
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

        pub(super) const NOTIFICATIONS: &[EventInfo] = &[ $( EventInfo {
            name: $name,
            description: concat!($($doc, "\n"),+),
            answer: None,
            payload_schema: |generator| generator.subschema_for::<$notification>(),
            reply_schema: |generator| generator.subschema_for::<()>(),
        }, )+ ];
    };
}

/// Declares the questions. An entry is that of a notification, then the type of the reply, and what a
/// handler may answer in a few words.
macro_rules! declare_questions {
    ( $(
        $(#[doc = $doc:literal])+
        $name:literal => $question:ident $body:tt -> $reply:ty = $answer:literal;
    )+ ) => {
        $( payload! { [$(#[doc = $doc])+] $question $body } )+

        $( impl Event for $question {
            const NAME: &'static str = $name;
            type Reply = $reply;
        } )+

        pub(super) const QUESTIONS: &[EventInfo] = &[ $( EventInfo {
            name: $name,
            description: concat!($($doc, "\n"),+),
            answer: Some($answer),
            payload_schema: |generator| generator.subschema_for::<$question>(),
            reply_schema: |generator| generator.subschema_for::<$reply>(),
        }, )+ ];
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

pub(super) use {declare_notifications, declare_questions, payload};
