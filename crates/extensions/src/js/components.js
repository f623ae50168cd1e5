// Components of `pi-tui` and `pi-coding-agent`. No face draws them: lists, lines and editors become questions, what a
// component would draw is shown as text, and waiting goes on until the extension is done. Evaluated as a function of
// the built-in modules, which it completes; returns what `ctx.ui` is made of.
(function (platform, builtIn) {
  "use strict";
  const tui = builtIn("tui");
  const codingAgent = builtIn("coding-agent");
  const { plain, plainTheme } = platform.helpers;
  const { matchesKey, truncateToWidth } = tui;
  const { Container, Text } = tui;
  const WIDTH = 80;

  // ---- components that ask
  // What is shown of a list, and what is chosen with the arrows.
  class SelectList extends Container {
    constructor(items = [], visible = 10, theme = {}) { super(); Object.assign(this, { items, visible, theme, selected: 0, filter: "" }); }
    get filteredItems() { const wanted = this.filter.toLowerCase(); return wanted === "" ? this.items : this.items.filter((item) => String(item.value ?? item.label).toLowerCase().startsWith(wanted)); }
    setFilter(filter) { this.filter = String(filter); this.selected = 0; }
    setSelectedIndex(at) { this.selected = Math.max(0, Math.min(at, this.filteredItems.length - 1)); }
    getSelectedItem() { return this.filteredItems[this.selected] ?? null; }
    handleInput(data) {
      const count = this.filteredItems.length;
      const move = (by) => { if (count) { this.selected = (this.selected + by + count) % count; this.onSelectionChange?.(this.getSelectedItem()); } };
      if (matchesKey(data, "up")) move(-1);
      else if (matchesKey(data, "down")) move(1);
      else if (matchesKey(data, "enter")) { const item = this.getSelectedItem(); if (item) this.onSelect?.(item); } else if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) this.onCancel?.();
    }
    render(width = WIDTH) { return this.filteredItems.length ? this.filteredItems.map((item, at) => truncateToWidth(`${at === this.selected ? "→" : " "} ${nameOf(item)}`, width)) : ["  No matching commands"]; }
  }
  class SettingsList extends Container {
    constructor(items = [], _visible, _theme, onChange, onCancel) { super(); Object.assign(this, { items, onChange, onCancel, selected: 0 }); }
    updateValue(id, value) { const item = this.items.find((item) => item.id === id); if (item) item.currentValue = value; }
    handleInput(data) {
      const item = this.items[this.selected];
      if (matchesKey(data, "up")) this.selected = Math.max(0, this.selected - 1);
      else if (matchesKey(data, "down")) this.selected = Math.min(this.items.length - 1, this.selected + 1);
      else if ((matchesKey(data, "enter") || matchesKey(data, "space")) && item?.values?.length) { item.currentValue = item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length]; this.onChange?.(item.id, item.currentValue); } else if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) this.onCancel?.();
    }
    render() { return this.items.map((item, at) => `${at === this.selected ? "→" : " "} ${item.label}: ${item.currentValue}`); }
  }
  // What is typed goes to the end.
  class Input extends Container {
    focused = false;
    constructor() { super(); this.value = ""; }
    setValue(value) { this.value = String(value); }
    getValue() { return this.value; }
    handleInput(data) {
      const text = String(data);
      if (matchesKey(text, "enter")) this.submitted = this.onSubmit?.(this.value);
      else if (matchesKey(text, "escape") || matchesKey(text, "ctrl+c")) (this.onEscape ?? this.onCancel)?.call(this);
      else if (matchesKey(text, "backspace")) this.value = [...this.value].slice(0, -1).join("");
      else if (!/[\u0000-\u001f]/.test(plain(text))) this.value += plain(text);
      else return;
      this.onChange?.(this.value);
    }
    render() { return [`> ${this.value}`]; }
  }
  class Editor extends Input {
    setText(text) { this.value = String(text); }
    getText() { return this.value; }
    getExpandedText() { return this.value; }
    getCursor() { const lines = this.getLines(); return { line: lines.length - 1, col: lines.at(-1).length }; }
    insertTextAtCursor(text) { this.value += text; }
    getLines() { return this.value.split("\n"); }
    render() { return this.getLines(); }
    addToHistory() {} setAutocompleteProvider() {} setPaddingX() {} getPaddingX() { return 0; } setAutocompleteMaxVisible() {} isShowingAutocomplete() { return false; }
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
  class DynamicBorder extends Container { constructor(colour) { super(); this.colour = colour; } render(width) { return ["─".repeat(Math.max(1, width))]; } }
  class KeybindingsManager { static create() { return new KeybindingsManager(); } matches(data, name) { return matchesKey(data, KEYS_OF_ACTIONS[name] ?? name); } getKeys(name) { return [KEYS_OF_ACTIONS[name] ?? []].flat(); } getEffectiveConfig() { return {}; } }
  class Image extends Container {}
  Object.assign(tui, { SelectList, SettingsList, Input, Editor, Loader, CancellableLoader, KeybindingsManager, Image });
  Object.assign(codingAgent, { CustomEditor, BorderedLoader, DynamicBorder, KeybindingsManager });
  for (const name of "ArminComponent AssistantMessageComponent BashExecutionComponent BranchSummaryMessageComponent CompactionSummaryMessageComponent CustomMessageComponent ExtensionEditorComponent ExtensionInputComponent ExtensionSelectorComponent FooterComponent LoginDialogComponent ModelSelectorComponent OAuthSelectorComponent SessionSelectorComponent SettingsSelectorComponent SkillInvocationMessageComponent ThemeSelectorComponent ThinkingSelectorComponent ToolExecutionComponent TreeSelectorComponent UserMessageComponent UserMessageSelectorComponent".split(" ")) codingAgent[name] = class extends Container {};

  // ---- keys
  const KEYS_OF_ACTIONS = { "tui.select.cancel": "escape", selectCancel: "escape", "app.interrupt": "escape", interrupt: "escape", "tui.select.confirm": "enter", selectConfirm: "enter", "tui.input.submit": "enter", submit: "enter", "tui.select.up": "up", selectUp: "up", cursorUp: "up", "tui.select.down": "down", selectDown: "down", cursorDown: "down", "tui.select.pageUp": "pageUp", "tui.select.pageDown": "pageDown", "tui.input.tab": "tab", tab: "tab", "app.tools.expand": "ctrl+o", expandTools: "ctrl+o", "app.clear": "ctrl+c", "app.exit": "ctrl+d" };
  const keybindings = new KeybindingsManager();
  // The key of an action; a key stays what it is.
  codingAgent.keyText = (action) => keybindings.getKeys(action).join("/") || String(action);
  codingAgent.keyHint = (action, text) => `${codingAgent.keyText(action)} ${text}`;
  codingAgent.rawKeyHint = (key, text) => `${key} ${text}`;
  Object.assign(tui, { TUI_KEYBINDINGS: {}, setKeybindings() {}, isKittyProtocolActive: () => false, isFocusable: (component) => component !== null && typeof component === "object" && "focused" in component, isViewportTUI: () => false, getCellDimensions: () => ({ widthPx: 9, heightPx: 18 }), setCellDimensions() {}, setCapabilities() {}, resetCapabilitiesCache() {}, detectCapabilities: () => tui.getCapabilities(), getImageDimensions: () => null, renderImage: () => null, imageFallback: (kind, _size, name) => `[Image: ${[name, kind].filter(Boolean).join(" ")}]`, getNativeClipboard: () => undefined, CombinedAutocompleteProvider: class { async getSuggestions() { return null; } applyCompletion(lines, cursorLine, cursorCol) { return { lines, cursorLine, cursorCol }; } }, isKeyRelease: () => false, isKeyRepeat: () => false, decodeKittyPrintable: () => undefined, getKeybindings: () => keybindings, getEditorKeybindings: () => keybindings, setKittyProtocolActive() {}, CURSOR_MARKER: "", getCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }) });

  // ---- what a face has in their place
  const nameOf = (item) => plain(item.label ?? item.value ?? "") + (item.description ? ` — ${plain(item.description)}` : "");
  const linesOf = (component, width = WIDTH) => { const lines = component?.render?.(width); const shown = Array.isArray(lines) ? lines.map((line) => plain(line).trimEnd()) : []; const isText = (line) => line !== ""; return shown.slice(Math.max(0, shown.findIndex(isText)), shown.findLastIndex(isText) + 1); };
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
  const [ENTER, ESCAPE, BACKSPACE] = ["\r", "\u001b", "\u007f"];
  const pause = () => new Promise((resolve) => setTimeout(resolve, 0));
  const takesKeys = (component) => typeof component?.handleInput === "function";
  // A line of signs that no one reads: a border, or nothing.
  const isRule = (line) => !/[\p{L}\p{N}]/u.test(line);
  const isRow = (line) => /^\s*(?:[→❯▶▸●○◉◯☐☑✓•>*]|\[.?\]|\(.?\)|[-+] |\d+[.)] )/u.test(line);
  const sameLines = (component) => new Set(linesOf(component).map((line) => line.trim()));
  // Shows what a component draws above a question, where that is new.
  function shower(ui) {
    let last = "";
    return (lines) => { const text = lines.join("\n").trimEnd(); if (text !== "" && text !== last) ui.notify(text, "info"); last = text; };
  }
  // What is typed goes to the component sign by sign, as in a terminal. False if its field did not take it so.
  function typeInto(component, field, text, isDone) {
    if (field.getValue() === text) return true;
    if (/[\u0000-\u001f]/.test(text)) return false;
    for (const _sign of field.getValue()) component.handleInput(BACKSPACE);
    for (let typed = "", signs = [...text]; signs.length; ) {
      if (field.getValue() !== typed) return false;
      typed += signs[0];
      component.handleInput(signs.shift());
      if (isDone()) return true;
    }
    return field.getValue() === text;
  }
  // True if the component may have more to ask.
  async function askText(ui, title, field, component, { isDone, signal }) {
    const isWrapped = component !== field && takesKeys(component);
    if (isWrapped) {
      const own = sameLines(field);
      const lines = linesOf(component);
      if (lines.some((line) => !isRule(line) && line.trim() !== title && !own.has(line.trim()))) shower(ui)(lines);
    }
    const text = field instanceof Editor ? await ui.editor(title, field.value) : await ui.input(title, field.value || undefined, { signal });
    if (isDone()) return false;
    const cancel = field.onEscape ?? field.onCancel;
    if (text === undefined) {
      if (cancel) await cancel.call(field);
      else if (isWrapped) component.handleInput(ESCAPE);
      return false;
    }
    if (!isWrapped || !typeInto(component, field, text, isDone)) { await field.onSubmit?.(text); return false; }
    if (!isDone()) component.handleInput(ENTER);
    await field.submitted;
    return true;
  }
  const KEYS = new Map([["Enter", ENTER], ["Up", "\u001b[A"], ["Down", "\u001b[B"], ["Tab", "\t"], ["Escape", ESCAPE]]);
  const TYPE = "Type …";
  const MAX_KEYS = 200;
  // The keys of a component that has its own ways, one question for each.
  async function askKeys(ui, titleOf, component, { isDone, signal }) {
    const show = shower(ui);
    for (let count = 0; count < MAX_KEYS && !isDone(); count++) {
      const lines = linesOf(component);
      if (lines.length === 0) { component.handleInput(ESCAPE); break; }
      show(lines);
      const chosen = await ui.select(titleOf(lines), [...KEYS.keys(), TYPE], { signal });
      if (isDone()) break;
      if (chosen === TYPE) {
        const text = (await ui.input("Text", undefined, { signal })) ?? "";
        for (const sign of text) if (!isDone()) component.handleInput(sign);
      } else component.handleInput(KEYS.get(chosen) ?? ESCAPE);
      await pause();
      if (chosen === undefined || KEYS.get(chosen) === ESCAPE) break;
    }
  }

  // `ctx.ui.custom`: the factory makes its component, and what that would let a person do is asked.
  async function runCustom(factory, ui) {
    let finish;
    let isDone = false;
    const result = new Promise((resolve) => { finish = resolve; });
    // A question that is open then is taken away.
    const ending = new AbortController();
    const done = (value) => { isDone = true; finish(value); ending.abort(); };
    const state = { isDone: () => isDone, signal: ending.signal };
    const parts = (platform.newComponents = []);
    let component;
    try { component = await factory(stubOfScreen(), plainTheme, keybindings, done); } finally { platform.newComponents = undefined; }
    const titleText = parts.filter((part) => part.constructor === Text).map((part) => plain(part.text).trim()).find(Boolean);
    const list = parts.findLast((part) => part instanceof SelectList || part instanceof SettingsList);
    const field = parts.findLast((part) => part instanceof Input);
    const titleOf = (lines) => {
      const rows = new Set([list, field].filter(Boolean).flatMap((part) => [...sameLines(part)]));
      return titleText ?? lines.find((line) => !isRule(line) && !isRow(line) && !rows.has(line.trim()))?.trim() ?? "Choose";
    };
    const title = () => titleOf(linesOf(component));
    try {
      if (isDone) return await result;
      if (parts.some((part) => part instanceof Loader)) return await result;
      if (list instanceof SelectList && list.items.length && (list.onSelect || list.onCancel)) await askList(ui, title(), list);
      else if (list instanceof SettingsList) await askSettings(ui, title(), list);
      else if (!field?.onSubmit || (await askText(ui, title(), field, component, state))) {
        if (takesKeys(component)) await askKeys(ui, titleOf, component, state);
        else if (!field?.onSubmit) shower(ui)(linesOf(component));
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
