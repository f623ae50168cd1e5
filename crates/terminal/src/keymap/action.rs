//! [`Action`]: the table of what keys can do.

/// Where an action's keys apply. A state of the face has several of them, the most special first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyLayer {
    /// The input line.
    Editor,
    /// The input line, while it is empty.
    EmptyLine,
    /// A failed request waits to be sent again, and the input line is empty.
    Retry,
    /// A list of completions is open.
    List,
    /// The history is searched.
    Search,
    /// A question about a call is active: it has the keys.
    Approval,
    /// The reason for a no is typed.
    Reason,
    /// The model asks something.
    Question,
    /// The full screen, whether keys go to its line or not.
    FullScreen,
    /// The full screen, while keys go to the conversation.
    Browse,
    /// A view: context, tree, pickers, diff, help.
    View,
    /// The context.
    Context,
    /// A list that is narrowed by typing.
    Picker,
    /// The tree of the conversation.
    Tree,
    /// The price of an act.
    Price,
    /// Changes of files.
    Diff,
}

impl KeyLayer {
    /// Every layer, as the document lists them.
    pub const ALL: [KeyLayer; 16] = [
        KeyLayer::Editor,
        KeyLayer::EmptyLine,
        KeyLayer::Retry,
        KeyLayer::List,
        KeyLayer::Search,
        KeyLayer::Approval,
        KeyLayer::Reason,
        KeyLayer::Question,
        KeyLayer::FullScreen,
        KeyLayer::Browse,
        KeyLayer::View,
        KeyLayer::Context,
        KeyLayer::Picker,
        KeyLayer::Tree,
        KeyLayer::Price,
        KeyLayer::Diff,
    ];

    /// When the layer's keys apply, as a heading.
    pub fn heading(self) -> &'static str {
        match self {
            KeyLayer::Editor => "In the input line",
            KeyLayer::EmptyLine => "While the input line is empty",
            KeyLayer::Retry => "While a failed request waits and the input line is empty",
            KeyLayer::List => "While a list of completions is open",
            KeyLayer::Search => "While the history is searched",
            KeyLayer::Approval => "When a call asks for approval",
            KeyLayer::Reason => "While you type the reason for a no",
            KeyLayer::Question => "When the model asks you something",
            KeyLayer::FullScreen => "In the full screen",
            KeyLayer::Browse => "In the full screen, after PgUp or the wheel (also those of views)",
            KeyLayer::View => "In views",
            KeyLayer::Context => "In the context view",
            KeyLayer::Picker => "In pickers (typing narrows the list)",
            KeyLayer::Tree => "In the tree",
            KeyLayer::Price => "When the price of an act is shown",
            KeyLayer::Diff => "In the view of changes",
        }
    }
}

/// The rows of the help that `?` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the headings themselves")]
pub enum HelpGroup {
    Write,
    Edit,
    Run,
    Look,
    Ask,
    Leave,
}

impl HelpGroup {
    /// Every group, in the order of the help.
    pub const ALL: [HelpGroup; 6] = [
        HelpGroup::Write,
        HelpGroup::Edit,
        HelpGroup::Run,
        HelpGroup::Look,
        HelpGroup::Ask,
        HelpGroup::Leave,
    ];

    /// The group's word.
    pub fn name(self) -> &'static str {
        match self {
            HelpGroup::Write => "write",
            HelpGroup::Edit => "edit",
            HelpGroup::Run => "run",
            HelpGroup::Look => "look",
            HelpGroup::Ask => "ask",
            HelpGroup::Leave => "leave",
        }
    }
}

macro_rules! actions {
    ($($layer:ident { $($variant:ident $name:literal [$($key:literal),*] $(($group:ident $short:literal))? $help:literal;)* })*) => {
        /// Something that a key does. The table gives its name in settings, its layer, its keys, and
        /// what it does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Action { $($(#[doc = $help] $variant,)*)* }

        impl Action {
            /// Every action, in the order of the table.
            pub const ALL: [Action; [$($($name,)*)*].len()] = [$($(Action::$variant,)*)*];

            /// The name in settings.
            pub fn name(self) -> &'static str {
                match self { $($(Action::$variant => $name,)*)* }
            }

            /// Where the action's keys apply.
            pub fn layer(self) -> KeyLayer {
                match self { $($(Action::$variant => KeyLayer::$layer,)*)* }
            }

            /// The keys, unless settings give others.
            pub fn default_keys(self) -> &'static [&'static str] {
                match self { $($(Action::$variant => &[$($key),*],)*)* }
            }

            /// What it does, as a sentence without its end.
            pub fn help(self) -> &'static str {
                match self { $($(Action::$variant => $help,)*)* }
            }

            /// The group of the help that shows it; none if only the document does.
            pub fn help_group(self) -> Option<HelpGroup> {
                match self {
                    $($($(Action::$variant => Some(HelpGroup::$group),)?)*)*
                    _ => None,
                }
            }

            /// What it does, in a word or two, for the help.
            pub fn short_help(self) -> &'static str {
                match self {
                    $($($(Action::$variant => $short,)?)*)*
                    other => other.help(),
                }
            }
        }
    };
}

impl Action {
    /// The action that settings call by this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Action::ALL.into_iter().find(|action| action.name() == name)
    }
}

actions! {
    Editor {
        Submit "send" ["enter"] (Write "send") "sends the line; during a run, after the current answer or call";
        Newline "newline" ["alt-enter", "shift-enter", "ctrl-j"] (Write "newline") "begins another line; so does Enter after a backslash";
        Queue "queue" ["tab"] (Run "at the end") "turns to a question that waits; else, during a run, sends the line when the run has ended";
        Stop "stop" ["esc"] (Run "stop") "stops the run; while nothing runs, twice: clears the line, or opens the tree if it is empty";
        Interrupt "interrupt" ["ctrl-c"] (Leave "stops, clears, leaves") "stops the run and keeps the draft; else clears the line; else, twice within 2 s, leaves";
        DeleteOrLeave "delete-or-leave" ["ctrl-d"] (Leave "on an empty line") "deletes the next character; on an empty line, leaves";
        NextMode "mode" ["shift-tab"] (Run "ask · edits · plan") "changes the mode: ask, edits, plan";
        Up "up" ["up", "ctrl-p"] "moves up in the text, then to earlier prompts; on an empty line, takes back the last queued message";
        Down "down" ["down", "ctrl-n"] "moves down in the text, then to later prompts";
        Left "left" ["left", "ctrl-b"] "moves a character back";
        Right "right" ["right", "ctrl-f"] "moves a character on; at the end, accepts the suggestion from the history";
        WordLeft "word-left" ["alt-b", "ctrl-left", "alt-left"] "moves a word back";
        WordRight "word-right" ["alt-f", "ctrl-right", "alt-right"] "moves a word on";
        LineStart "line-start" ["ctrl-a", "home"] "moves to the start of the line";
        LineEnd "line-end" ["ctrl-e", "end"] "moves to the end of the line";
        DeleteBack "delete-back" ["backspace", "ctrl-h"] "deletes the character or the paste before the cursor";
        DeleteForward "delete-forward" ["delete"] "deletes the next character";
        KillToEnd "kill-to-end" ["ctrl-k"] "cuts up to the end of the line";
        KillToStart "kill-to-start" ["ctrl-u"] "cuts from the start of the line";
        KillWordBack "kill-word-back" ["ctrl-w"] "cuts back to the last space";
        KillWordPartBack "kill-word-part-back" ["alt-backspace"] "cuts the word before the cursor";
        KillWordForward "kill-word-forward" ["alt-d"] "cuts the next word";
        Yank "yank" ["ctrl-y"] "inserts what was cut or cleared last";
        YankOlder "yank-older" ["alt-y"] "after that, inserts what was cut before instead";
        Undo "undo" ["ctrl-_"] (Edit "undo") "undoes the last change of the line";
        LastWord "last-word" ["alt-."] "inserts the last word of the prompt before";
        SearchHistory "search-history" ["ctrl-r"] (Edit "history") "searches earlier prompts";
        Stash "stash" ["ctrl-s"] (Edit "stash") "puts the line away; on an empty line, brings it back";
        ExternalEditor "external-editor" ["ctrl-g", "ctrl-x ctrl-e"] (Edit "editor") "opens the line in your editor ($VISUAL, $EDITOR)";
        PasteImage "paste-image" ["ctrl-v"] (Edit "image") "adds the image of the clipboard";
        ExpandPaste "expand-paste" ["alt-v"] "shows the text of the paste before the cursor";
        Suspend "suspend" ["ctrl-z"] "gives the terminal back to the shell; `fg` returns";
        Redraw "redraw" ["ctrl-l"] "draws the live area again; clears nothing";
        ViewContext "context" ["f2", "ctrl-x c"] (Look "context") "shows the context";
        ViewModel "model" ["ctrl-x m"] "chooses model and effort";
        ViewSessions "sessions" ["ctrl-x s"] "chooses a session";
        ViewTree "tree" ["ctrl-x t"] "shows the tree of the conversation";
        FullScreen "full-screen" ["ctrl-t"] (Look "full screen") "shows the whole conversation, to scroll, fold and search";
        LastCall "last-call" ["ctrl-o"] (Look "last call") "the same at the last tool call, unfolded";
        ViewChanges "changes" ["ctrl-x d"] "shows what the session has changed in files";
        ViewLayout "layout" ["ctrl-x l"] "chooses the layout";
        ViewHelp "help" ["f1"] "shows the keys";
    }
    EmptyLine {
        EmptyHelp "help-empty" ["?"] "shows the keys";
    }
    Retry {
        RetryNow "retry-now" ["r"] "sends the request again at once";
    }
    List {
        AcceptCompletion "accept" ["tab"] "takes the marked completion";
        NextCompletion "next-completion" ["down", "ctrl-n"] "marks the next completion";
        PreviousCompletion "previous-completion" ["up", "ctrl-p"] "marks the completion before";
        CloseList "close-list" ["esc"] "closes the list for this word";
    }
    Search {
        SearchOlder "search-older" ["ctrl-r", "up"] "finds an earlier prompt";
        SearchNewer "search-newer" ["ctrl-s", "down"] "finds a later prompt";
        SearchAccept "search-accept" ["enter", "tab", "right"] "takes the prompt into the line";
        SearchCancel "search-cancel" ["esc", "ctrl-c", "ctrl-g"] "leaves the line as it was";
        SearchDelete "search-delete" ["backspace", "ctrl-h"] "deletes the last character of the search";
    }
    Approval {
        ApproveOnce "yes" ["y", "1"] (Ask "yes") "yes, this time";
        ApproveSession "yes-session" ["s", "2"] (Ask "session") "yes, and calls of the rule shown, until you leave";
        ApproveAlways "yes-always" ["a", "3"] (Ask "always") "the same, always in this repository";
        Refuse "no" ["n", "4"] (Ask "no, why") "no, and say why";
        EditCall "edit-call" ["e"] (Ask "edit") "change the command or the text in your editor, then run it";
        ShowWhole "show-whole" ["v"] "all of it, from line 1";
        ShowDiff "show-diff" ["d"] (Ask "diff") "the whole file before and after, side by side";
        RefuseAndStop "no-and-stop" ["esc", "ctrl-c"] "no, and stop the run";
        LeaveApproval "back-to-line" ["tab"] (Ask "focus") "back to the input line; the question waits";
        NextChoice "next-choice" ["down"] "marks the next answer";
        PreviousChoice "previous-choice" ["up"] "marks the answer before";
        TakeChoice "take-choice" ["enter"] "gives the marked answer; does nothing until ↑ or ↓ has marked one";
        ApprovalMode "approval-mode" ["shift-tab"] "changes the mode, for later calls";
    }
    Reason {
        SendReason "send-reason" ["enter"] "says no with this reason";
        CancelReason "cancel-reason" ["esc", "ctrl-c"] "back to the question";
    }
    Question {
        SendAnswer "send-answer" ["enter"] "sends the marked choice, or the line";
        NextAnswer "next-answer" ["down", "tab"] "marks the next choice";
        PreviousAnswer "previous-answer" ["up", "shift-tab"] "marks the choice before";
        RefuseAnswer "no-answer" ["esc"] "answers nothing; whoever asks is told";
        StopFromQuestion "stop-from-question" ["ctrl-c"] "answers nothing and stops what runs, which may ask again otherwise";
    }
    FullScreen {
        FullBack "full-back" ["ctrl-t"] "back to the page, where everything said meanwhile is printed";
        FullUp "full-up" ["pageup"] "one screen up; keys then go to the conversation";
        FullDown "full-down" ["pagedown"] "one screen down; at the end, keys go to the line again";
        FullLastCall "full-last-call" ["ctrl-o"] "to the last tool call, unfolded";
        FullStrata "full-strata" ["f2"] "hides or shows the context beside the conversation; below 100 columns, opens it";
    }
    Browse {
        Fold "fold" ["space", "enter"] "folds or unfolds what the cursor is on";
        ToLine "to-line" ["tab"] "back to the input line, at the end";
    }
    View {
        ViewDown "view-down" ["down", "j"] "one row down";
        ViewUp "view-up" ["up", "k"] "one row up";
        ViewPageDown "view-page-down" ["pagedown", "ctrl-f"] "one screen down";
        ViewPageUp "view-page-up" ["pageup", "ctrl-b"] "one screen up";
        ViewTop "view-top" ["g", "home"] "to the start";
        ViewBottom "view-bottom" ["G", "end"] "to the end";
        ViewSearch "view-search" ["/"] "searches";
        ViewSearchNext "view-search-next" ["n"] "to the next match";
        ViewSearchPrevious "view-search-previous" ["N"] "to the match before";
        ViewMark "view-space" ["space"] "one screen down";
        ViewBack "view-back" ["q", "esc", "ctrl-c"] "back";
    }
    Context {
        ContextOpen "context-open" ["enter"] "opens a layer, or shows the text of an item";
        ContextPin "context-pin" ["p"] "pins the item: it stays in every request; again lets it go";
        ContextClose "context-close" ["c"] "takes the item out of later requests, where that is free";
        ContextExclude "context-exclude" ["x"] "takes the item out at once";
        ContextRecall "context-recall" ["r"] "sends again what was taken out";
        ContextFold "context-fold" ["f"] "folds with the next request";
        ContextWhy "context-why" ["w"] "explains how the last request used the cache";
        ContextBytes "context-bytes" ["v"] "shows the request as it is sent";
        ContextDiff "context-diff" ["D"] "shows what differs from the request before";
        ContextLayout "context-layout" ["L"] "chooses the layout";
    }
    Picker {
        PickDown "pick-down" ["down", "ctrl-n"] "one row down";
        PickUp "pick-up" ["up", "ctrl-p"] "one row up";
        PickPageDown "pick-page-down" ["pagedown"] "one screen down";
        PickPageUp "pick-page-up" ["pageup"] "one screen up";
        PickTake "pick" ["enter"] "takes the chosen entry";
        PickLeft "pick-left" ["left"] "models: less effort";
        PickRight "pick-right" ["right"] "models: more effort";
        PickOther "pick-other" ["tab"] "sessions: of all folders, or of this one";
        PickRename "pick-rename" ["ctrl-r"] "sessions: gives the chosen one a name";
        PickDelete "pick-delete" ["ctrl-d"] "sessions: twice, deletes the chosen one";
        PickErase "pick-erase" ["backspace", "ctrl-h"] "deletes the last character";
        PickClear "pick-clear" ["ctrl-u"] "deletes what is typed";
        PickBack "pick-back" ["esc", "ctrl-c"] "back";
    }
    Tree {
        TreeGo "tree-go" ["enter"] "goes back to the chosen step, and so do the files";
        TreeKeepFiles "tree-keep-files" ["u"] "goes back to it and leaves the files as they are";
        TreeSummary "tree-summary" ["s"] "goes back to it with a summary of what is left";
    }
    Price {
        PriceNow "price-now" ["n"] "does it now";
        PriceFold "price-fold" ["f"] "does it when it costs nothing: at the next fold, or when the cache has expired";
        PriceTake "price-take" ["enter"] "takes the marked choice";
    }
    Diff {
        DiffNext "diff-next" ["tab", "]"] "to the next change";
        DiffPrevious "diff-previous" ["shift-tab", "["] "to the change before";
    }
}
