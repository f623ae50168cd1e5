//! [`Model`]: everything that the face knows. [`Model::update`](crate::update) changes it,
//! [`view`](crate::view) draws it; nothing here reads a clock or writes.

mod agent_update; // AgentUpdate: what the agent tells
mod asking; // what is asked, and what is shown only after the answer
mod extension_area; // ExtensionArea: what extensions show beside the conversation
mod mode; // Mode: ask, edits, plan
mod page_text; // PageText: lines that are to be printed

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use agent_update::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, CallKind, QuestionPrompt, RuleOffer, TaskProgress, ToolEnd,
};
use asking::HeldText;
pub use extension_area::ExtensionArea;
pub use mode::Mode;
pub use page_text::{BlockKind, PageText};

use crate::blocks::{Delivery, MarkdownRenderer, StatusLine, Subject};
use crate::editor::{CompletionSources, EditBuffer, Editor};
use crate::input::InputEvent;
use crate::keymap::{KeyPress, Keymap};
use crate::screen::ScreenSize;
use crate::theme::Theme;
use crate::transcript::{BlockSource, Transcript};
pub use crate::views::ViewKind;

/// An approval that appears sooner after a key than this waits: the next key was meant for the line.
pub const QUIET_TIME: Duration = Duration::from_millis(700);
/// Within this time a second key means "really".
pub const TWICE_TIME: Duration = Duration::from_secs(2);
/// How often a draft is saved.
pub const DRAFT_TIME: Duration = Duration::from_secs(1);
/// A run that took longer rings when it ends or asks.
pub const LONG_RUN: Duration = Duration::from_secs(15);

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The person did something.
    Input(InputEvent),
    /// The agent did something.
    Agent(AgentUpdate),
    /// Time has passed.
    Tick,
    /// A frame with the current state is on the screen.
    Drawn,
    /// What was said earlier in the conversation that goes on now. It is not printed.
    Earlier(Vec<(BlockKind, BlockSource)>),
    /// The page went behind a view or the full screen, or came back.
    PageHidden(bool),
    /// The external editor gave this text.
    EditorClosed(String),
    /// A text is to be changed in the external editor; what comes of it goes into the line.
    EditText(String),
    /// The external editor gave this text for a call.
    CallEdited {
        /// Number of the question.
        id: u64,
        /// What the person made of it.
        text: String,
    },
    /// Text for the line, at the cursor.
    Insert(String),
    /// A queued message was taken back.
    TakenBack(String),
    /// The mode was set by a command.
    ModeSet(Mode),
    /// What the status line says; the mode in it is the face's own.
    Status(StatusLine),
    /// What goes on in the background, such as the index; none once it is over.
    BackgroundWork(Option<String>),
    /// Completions come from elsewhere from now on.
    Sources(CompletionSources),
    /// What extensions show beside the conversation from now on.
    Extensions(ExtensionArea),
    /// The keys that extensions take, with their own names for them.
    ExtensionKeys(BTreeMap<KeyPress, String>),
    /// Text for the line, in place of what is there.
    SetLine(String),
    /// An extension puts this text into the input line, where the cursor is.
    ExtensionInsert(String),
    /// The title of the window.
    Title(String),
}

/// What the face wants to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A prompt while nothing runs, or a command at any time.
    Send(crate::editor::Submission),
    /// A prompt that is delivered after the running answer or call.
    Steer(crate::editor::Submission),
    /// A prompt that is delivered when the run has ended.
    QueueForEnd(crate::editor::Submission),
    /// Take back the last queued message; [`Event::TakenBack`] gives it to the line.
    TakeBack,
    /// Stop the run. Nobody answers its questions any more.
    Stop,
    /// Stop it without waiting for anything.
    Kill,
    /// Stop the work behind the conversation, such as indexing.
    StopBackgroundWork,
    /// An answer to a question about a call.
    Answer {
        /// Number of the question.
        id: u64,
        /// The answer.
        answer: ApprovalAnswer,
    },
    /// An answer to a question in words; none if there is none.
    AnswerQuestion {
        /// Number of the question.
        id: u64,
        /// The answer.
        answer: Option<String>,
    },
    /// Let the person change a call in the external editor; [`Event::CallEdited`] gives it back.
    EditCall {
        /// Number of the question.
        id: u64,
        /// What can be changed.
        text: String,
    },
    /// Send a failed request again at once.
    RetryNow,
    /// Another mode holds from the next call on.
    SetMode(Mode),
    /// Open a view.
    Open(ViewKind),
    /// Open the line in the external editor; [`Event::EditorClosed`] gives it back.
    OpenEditor(String),
    /// Give the terminal to the shell.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Leave the program.
    Leave,
    /// Store what is typed and not sent; an empty text removes it.
    SaveDraft(String),
    /// Take an image from the clipboard; [`Event::Insert`] gives its mention to the line.
    PasteImage,
    /// Stop the run before it has said anything: its prompt is back in the line.
    StopAndTakeBack,
    /// Add a line to the history file.
    AppendHistory(String),
    /// A key that an extension takes was pressed; its own name for it.
    ExtensionKey(String),
    /// Name the window.
    SetTitle(String),
    /// Ring, because the person may be elsewhere.
    Notify(String),
}

/// What the agent does.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// An answer arrives, or is waited for.
    Streaming,
    /// Tools run.
    Tool,
    /// The conversation is being compacted.
    Compacting {
        /// From how much to how much.
        text: String,
    },
    /// A failed request waits to be sent again.
    Retry {
        /// What went wrong.
        message: String,
        /// When it is sent again.
        until: Duration,
        /// The number of the attempt that follows.
        attempt: u32,
        /// The most attempts.
        attempts: u32,
    },
    /// The run was told to stop.
    Stopping,
}

/// Where keys go, derived from the model: the rows of the table of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the states of the design")]
pub enum FaceState {
    Idle,
    Streaming,
    Tool,
    ApprovalWaiting,
    ApprovalActive,
    ApprovalReason,
    Question,
    Compacting,
    Retry,
    Stopping,
}

/// Who has the keys while a call waits for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ApprovalFocus {
    /// The line; the question becomes active once the line is empty and quiet.
    #[default]
    Waiting,
    /// The line, until the person turns to the question.
    Parked,
    /// The question.
    Active {
        /// When it was first on the screen: earlier keys belong to the line.
        drawn_at: Option<Duration>,
        /// The answer that ↑ or ↓ has marked.
        marked: Option<usize>,
    },
    /// The line for the reason of a no.
    Reason {
        /// What is typed so far.
        reason: EditBuffer,
    },
}

/// A tool that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTool {
    /// The call's id.
    pub id: Arc<str>,
    /// Name of the tool.
    pub name: String,
    /// What it works on.
    pub subject: Subject,
    /// When it started.
    pub since: Duration,
    /// Its last lines.
    pub output: String,
    /// How many lines there were.
    pub line_count: usize,
    /// How far it is, if it is a sub-agent.
    pub task: Option<TaskProgress>,
}

/// Who has the keys while a question in words is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuestionFocus {
    /// The line, until the person has not typed for a while.
    #[default]
    Waiting,
    /// The question. Keys belong to the line that were pressed before it was first on the screen.
    Active {
        /// When that was.
        drawn_at: Option<Duration>,
    },
}

/// A question in words, and its answer so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// What is asked.
    pub prompt: QuestionPrompt,
    /// What it is about, which is printed above it.
    pub subject: Option<String>,
    /// Who has the keys.
    pub focus: QuestionFocus,
    /// The marked choice.
    pub marked: Option<usize>,
    /// The free line.
    pub answer: EditBuffer,
}

/// Everything that the face knows.
#[derive(Clone, Debug)]
pub struct Model {
    /// The keys.
    pub keymap: Keymap,
    /// Whether the glyph of a running call turns.
    pub has_motion: bool,
    /// Colours and glyphs.
    pub theme: Theme,
    /// The terminal's size.
    pub size: ScreenSize,
    /// The input line.
    pub editor: Editor,
    /// What the agent does.
    pub phase: Phase,
    /// How much it may do without asking.
    pub mode: Mode,
    /// Calls that wait for an answer, the first one first.
    pub approvals: VecDeque<ApprovalPrompt>,
    /// Who has the keys while there are some.
    pub approval_focus: ApprovalFocus,
    /// How many were answered since there were none, to count them: "2 of 3".
    pub approvals_answered: usize,
    /// A question in words.
    pub question: Option<OpenQuestion>,
    /// Questions in words whose turn comes later.
    pub waiting_questions: VecDeque<QuestionPrompt>,
    /// What was said since something is asked.
    held: Vec<HeldText>,
    /// The person has sent a command since something is asked, and it has said nothing yet.
    pub(crate) expects_reply: bool,
    /// What extensions show.
    pub extensions: ExtensionArea,
    /// The keys that extensions take, where nothing else is meant by them.
    pub extension_keys: BTreeMap<KeyPress, String>,
    /// Messages that wait to be delivered.
    pub queue: Vec<(Delivery, String)>,
    /// Tools that run.
    pub tools: Vec<RunningTool>,
    /// The answer that arrives.
    pub answer: MarkdownRenderer,
    /// Whether the answer has begun.
    pub has_text: bool,
    /// Whether anything came in this run: after that, a stop keeps the prompt where it is.
    pub has_begun: bool,
    /// The reasoning that arrives.
    pub reasoning: String,
    /// When the reasoning began.
    pub reasoning_since: Option<Duration>,
    /// Everything that was said.
    pub transcript: Transcript,
    /// Lines that are to be printed.
    pub page: PageText,
    /// The page is not on the screen: what is said meanwhile is printed when it is back.
    pub is_page_hidden: bool,
    /// The status line; its mode is taken from `mode`.
    pub status: StatusLine,
    /// What goes on in the background.
    pub background_work: Option<String>,
    /// What the person was told last about a key that needs a second press.
    pub hint: Option<(String, Duration)>,
    /// When the run began.
    pub run_since: Option<Duration>,
    /// The prompt of the run, which a stop before the first word gives back.
    pub last_prompt: String,
    /// Whether the terminal's window has the focus.
    pub has_focus: bool,
    /// The time of the last event.
    pub now: Duration,
    /// The time of the last key.
    pub last_key: Option<Duration>,
    /// When an extension changed the input line last.
    pub line_changed_at: Option<Duration>,
    /// When the draft changed first after it was saved; none if it is saved.
    pub(crate) draft_since: Option<Duration>,
    pub(crate) pending_key: Option<KeyPress>,
    pub(crate) escape_at: Option<Duration>,
    pub(crate) interrupt_at: Option<Duration>,
    pub(crate) leave_at: Option<Duration>,
}

impl Model {
    /// A face in which nothing has happened.
    pub fn new(editor: Editor, keymap: Keymap, theme: Theme, size: ScreenSize) -> Self {
        let mut model = Model {
            keymap,
            has_motion: true,
            theme,
            size,
            editor,
            phase: Phase::Idle,
            mode: Mode::Ask,
            approvals: VecDeque::new(),
            approval_focus: ApprovalFocus::Waiting,
            approvals_answered: 0,
            question: None,
            waiting_questions: VecDeque::new(),
            held: Vec::new(),
            expects_reply: false,
            extensions: ExtensionArea::default(),
            extension_keys: BTreeMap::new(),
            queue: Vec::new(),
            tools: Vec::new(),
            answer: MarkdownRenderer::new(usize::from(size.columns), theme),
            has_text: false,
            has_begun: false,
            reasoning: String::new(),
            reasoning_since: None,
            transcript: Transcript::default(),
            page: PageText::default(),
            is_page_hidden: false,
            status: StatusLine::default(),
            background_work: None,
            hint: None,
            run_since: None,
            last_prompt: String::new(),
            has_focus: true,
            now: Duration::ZERO,
            last_key: None,
            line_changed_at: None,
            draft_since: None,
            pending_key: None,
            escape_at: None,
            interrupt_at: None,
            leave_at: None,
        };
        model.set_size(size);
        model
    }

    /// Tells the parts that wrap about the terminal's size.
    pub(crate) fn set_size(&mut self, size: ScreenSize) {
        self.size = size;
        let columns = usize::from(size.columns);
        self.answer.set_width(columns);
        self.editor.set_columns(columns.saturating_sub(2));
    }

    /// Goes on with another conversation, of which this was said earlier.
    pub fn replace_transcript(&mut self, earlier: Vec<(BlockKind, BlockSource)>) {
        self.release_held();
        self.transcript.finish_answer();
        self.print_new();
        self.transcript.replace(earlier);
        self.page.skip_to_end(&self.transcript);
        self.print_what_is_asked();
    }

    /// Makes lines of what is new, unless they would be made for a width that is not the page's.
    pub(crate) fn fill_page(&mut self) {
        if !self.is_page_hidden {
            self.print_new();
        }
    }

    fn print_new(&mut self) {
        let columns = usize::from(self.size.columns);
        self.page.take_new(&self.transcript, &mut self.answer, columns, &self.theme);
    }

    /// Where keys go.
    pub fn state(&self) -> FaceState {
        if !self.approvals.is_empty() {
            return match &self.approval_focus {
                ApprovalFocus::Waiting | ApprovalFocus::Parked => FaceState::ApprovalWaiting,
                ApprovalFocus::Active { .. } => FaceState::ApprovalActive,
                ApprovalFocus::Reason { .. } => FaceState::ApprovalReason,
            };
        }
        let is_active = |question: &OpenQuestion| question.focus != QuestionFocus::Waiting;
        if self.question.as_ref().is_some_and(is_active) {
            return FaceState::Question;
        }
        self.state_of_line()
    }

    /// Where keys go while nothing is asked.
    pub(crate) fn state_of_line(&self) -> FaceState {
        match self.phase {
            Phase::Idle => FaceState::Idle,
            Phase::Streaming => FaceState::Streaming,
            Phase::Tool => FaceState::Tool,
            Phase::Compacting { .. } => FaceState::Compacting,
            Phase::Retry { .. } => FaceState::Retry,
            Phase::Stopping => FaceState::Stopping,
        }
    }

    /// Whether a run is under way.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// When the face has to be drawn again although nothing happens: seconds that count, a question
    /// that becomes active, a hint that goes. None while nothing moves.
    pub fn next_tick(&self) -> Option<Duration> {
        let quiet = self.last_key.map_or(Duration::ZERO, |key| key + QUIET_TIME);
        let is_about_to_ask = match self.approvals.is_empty() {
            true => self.question.as_ref().is_some_and(|question| question.focus == QuestionFocus::Waiting),
            false => self.approval_focus == ApprovalFocus::Waiting && self.editor.is_empty(),
        };
        let moving = self.is_running().then(|| self.now + Duration::from_millis(250));
        let hint = self.hint.as_ref().map(|(_, since)| *since + TWICE_TIME);
        let asking = is_about_to_ask.then(|| quiet.max(self.now));
        let draft = self.draft_since.map(|since| since + DRAFT_TIME);
        [moving, hint, asking, draft].into_iter().flatten().min()
    }
}
