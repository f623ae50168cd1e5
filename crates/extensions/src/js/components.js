// Components of `pi-tui` and `pi-coding-agent`. No face draws them: lists, lines and editors become questions, what a
// component would draw is shown as text, and waiting goes on until the extension is done. Evaluated as a function of
// the built-in modules, which it completes; returns what `ctx.ui` is made of.
(function (platform, builtIn) {
  "use strict";
  const tui = builtIn("tui");
  const codingAgent = builtIn("coding-agent");
  const { plain, plainTheme } = platform.helpers;
  const { Container, Text } = tui;
  const WIDTH = 80;

  // ---- components that ask
  class SelectList extends Container {
    constructor(items = []) { super(); this.items = items; this.selected = 0; }
    setFilter(filter) { this.filter = String(filter); }
    setSelectedIndex(at) { this.selected = at; }
    getSelectedItem() { return this.items[this.selected] ?? null; }
    render() { return this.items.map((item, at) => `${at === this.selected ? "→" : " "} ${nameOf(item)}`); }
  }
  class SettingsList extends Container {
    constructor(items = [], _visible, _theme, onChange, onCancel) { super(); Object.assign(this, { items, onChange, onCancel }); }
    updateValue(id, value) { const item = this.items.find((item) => item.id === id); if (item) item.currentValue = value; }
    render() { return this.items.map((item) => `${item.label}: ${item.currentValue}`); }
  }
  class Input extends Container {
    constructor() { super(); this.value = ""; }
    setValue(value) { this.value = String(value); }
    getValue() { return this.value; }
    render() { return [this.value]; }
  }
  class Editor extends Input {
    setText(text) { this.value = String(text); }
    getText() { return this.value; }
    getExpandedText() { return this.value; }
    insertTextAtCursor(text) { this.value += text; }
    getLines() { return this.value.split("\n"); }
    addToHistory() {} setAutocompleteProvider() {} setPaddingX() {} isShowingAutocomplete() { return false; }
  }
  class CustomEditor extends Editor { actionHandlers = new Map(); onAction(action, handler) { this.actionHandlers.set(action, handler); } }
  class Loader extends Text {
    constructor(_tui, _colour, _textColour, message) { super(String(message ?? "")); }
    setMessage(message) { this.setText(String(message)); }
    start() {} stop() {} setIndicator() {}
  }
  class CancellableLoader extends Loader {
    #ending = new AbortController();
    get signal() { return this.#ending.signal; }
    get aborted() { return this.#ending.signal.aborted; }
    dispose() {}
  }
  class BorderedLoader extends CancellableLoader { constructor(tui, theme, message) { super(tui, theme, theme, message); } }
  class TruncatedText extends Text {}
  class DynamicBorder extends Container { constructor(colour) { super(); this.colour = colour; } render(width) { return ["─".repeat(Math.max(1, width))]; } }
  class KeybindingsManager { static create() { return new KeybindingsManager(); } matches(data, name) { return matchesKey(data, KEYS_OF_ACTIONS[name] ?? name); } getKeys() { return []; } getEffectiveConfig() { return {}; } }
  class Image extends Container {}
  Object.assign(tui, { SelectList, SettingsList, Input, Editor, Loader, CancellableLoader, TruncatedText, KeybindingsManager, Image });
  Object.assign(codingAgent, { CustomEditor, BorderedLoader, DynamicBorder, KeybindingsManager });
  for (const name of "ArminComponent AssistantMessageComponent BashExecutionComponent BranchSummaryMessageComponent CompactionSummaryMessageComponent CustomMessageComponent ExtensionEditorComponent ExtensionInputComponent ExtensionSelectorComponent FooterComponent LoginDialogComponent ModelSelectorComponent OAuthSelectorComponent SessionSelectorComponent SettingsSelectorComponent SkillInvocationMessageComponent ThemeSelectorComponent ThinkingSelectorComponent ToolExecutionComponent TreeSelectorComponent UserMessageComponent UserMessageSelectorComponent".split(" ")) codingAgent[name] = class extends Container {};

  // ---- keys
  const KEYS = { "\u001b": "escape", "\r": "enter", "\n": "enter", "\t": "tab", " ": "space", "\u007f": "backspace", "\u001b[A": "up", "\u001b[B": "down", "\u001b[C": "right", "\u001b[D": "left", "\u001b[H": "home", "\u001b[F": "end", "\u001b[3~": "delete", "\u001b[5~": "pageUp", "\u001b[6~": "pageDown", "\u001b[Z": "shift+tab" };
  const KEYS_OF_ACTIONS = { "tui.select.cancel": "escape", selectCancel: "escape", "app.interrupt": "escape", interrupt: "escape", "tui.select.confirm": "enter", selectConfirm: "enter", "tui.select.up": "up", selectUp: "up", "tui.select.down": "down", selectDown: "down" };
  const parseKey = (data) => KEYS[data] ?? (data.length === 1 && data < " " ? `ctrl+${String.fromCharCode(data.charCodeAt(0) + 96)}` : data.length === 1 ? data : undefined);
  const same = (key) => String(key).toLowerCase().replace(/^esc$/, "escape").replace(/^return$/, "enter");
  const matchesKey = (data, key) => { const pressed = parseKey(String(data)); return pressed !== undefined && same(pressed) === same(key); };
  const keybindings = new KeybindingsManager();
  Object.assign(tui, { matchesKey, parseKey, isKeyRelease: () => false, isKeyRepeat: () => false, decodeKittyPrintable: () => undefined, getKeybindings: () => keybindings, getEditorKeybindings: () => keybindings, setKittyProtocolActive() {}, CURSOR_MARKER: "", getCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }) });

  // ---- what a face has in their place
  const nameOf = (item) => plain(item.label ?? item.value ?? "") + (item.description ? ` — ${plain(item.description)}` : "");
  const linesOf = (component, width = WIDTH) => { const lines = component?.render?.(width); return Array.isArray(lines) ? lines.map((line) => plain(line).trimEnd()) : []; };
  const terminal = { columns: WIDTH, rows: 24, write() {}, kittyProtocolActive: false, setTitle() {} };
  const stubOfScreen = (requestRender = () => {}) => ({ requestRender, terminal, children: [], addChild() {}, removeChild() {}, setFocus() {}, start() {}, stop() {}, invalidate() {}, hasOverlay: () => false, hideOverlay() {}, addInputListener: () => () => {}, showOverlay: () => ({ hide() {}, setHidden() {}, isHidden: () => true, focus() {}, unfocus() {} }) });

  async function askList(ui, title, list) {
    const names = list.items.map(nameOf);
    const chosen = names.indexOf(await ui.select(title, names));
    list.selected = Math.max(0, chosen);
    await (chosen >= 0 ? list.onSelect?.(list.items[chosen]) : list.onCancel?.());
  }
  async function askSettings(ui, title, list) {
    const end = "Done";
    for (;;) {
      const names = list.items.map((item) => `${plain(item.label)}: ${plain(item.currentValue ?? "")}`);
      const chosen = names.indexOf(await ui.select(title, [...names, end]));
      if (chosen < 0) break;
      const item = list.items[chosen];
      const values = item.values ?? [];
      const next = values.length <= 2 ? values[(values.indexOf(item.currentValue) + 1) % values.length] : await ui.select(plain(item.label), values);
      if (next === undefined) continue;
      item.currentValue = next;
      await list.onChange?.(item.id, next);
    }
    await list.onCancel?.();
  }
  async function askText(ui, title, field) {
    const text = field instanceof Editor ? await ui.editor(title, field.value) : await ui.input(title, field.value || undefined);
    await (text === undefined ? (field.onEscape ?? field.onCancel)?.call(field) : field.onSubmit?.(text));
  }

  // `ctx.ui.custom`: the factory makes its component, and what that would let a person do is asked.
  async function runCustom(factory, ui) {
    let finish;
    let isDone = false;
    const result = new Promise((resolve) => { finish = resolve; });
    const done = (value) => { isDone = true; finish(value); };
    const parts = (platform.newComponents = []);
    let component;
    try { component = await factory(stubOfScreen(), plainTheme, keybindings, done); } finally { platform.newComponents = undefined; }
    const titleText = parts.filter((part) => part.constructor === Text).map((part) => plain(part.text).trim()).find(Boolean);
    const title = titleText ?? "Choose";
    const list = parts.findLast((part) => part instanceof SelectList || part instanceof SettingsList);
    const field = parts.findLast((part) => part instanceof Input);
    try {
      if (isDone) return await result;
      if (parts.some((part) => part instanceof Loader)) return await result;
      if (list instanceof SelectList && list.items.length && (list.onSelect || list.onCancel)) await askList(ui, title, list);
      else if (list instanceof SettingsList) await askSettings(ui, title, list);
      else if (field?.onSubmit) await askText(ui, title, field);
      else {
        const lines = linesOf(component);
        while (lines.length && lines[0] === "") lines.shift();
        if (lines.some((line) => line !== "")) ui.notify(lines.join("\n").trimEnd(), "info");
        component?.handleInput?.("\u001b");
      }
      if (!isDone) done(undefined);
      return await result;
    } finally {
      component?.dispose?.();
    }
  }
  // A widget that is a component: its lines, whenever it asks to be drawn.
  const widgets = new Map();
  function followWidget(key, factory, show) {
    widgets.get(key)?.dispose?.();
    widgets.delete(key);
    if (typeof factory !== "function") return;
    let component;
    const draw = () => { if (component && widgets.get(key) === component) show(linesOf(component)); };
    let isWaiting = false;
    const soon = () => { if (!isWaiting) { isWaiting = true; setTimeout(() => { isWaiting = false; draw(); }, 50); } };
    component = factory(stubOfScreen(soon), plainTheme);
    if (!component) return;
    widgets.set(key, component);
    draw();
  }
  return { runCustom, followWidget };
})
