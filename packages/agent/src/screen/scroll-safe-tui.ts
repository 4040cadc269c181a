/**
 * The library's screen with one more rule: lines that have scrolled away belong to the terminal and are never written again. The library
 * alone would clear the terminal's scroll-back to redraw such lines, and with it earlier output of the shell. Here its document is only the
 * visible part. After a resize, in which the terminal itself moves lines, the terminal is asked for the place of its cursor.
 */
import { CURSOR_MARKER, type Terminal, TuiMainScreen, visibleWidth } from '@earendil-works/pi-tui'

const NOTHING_DRAWN = {
  previousLines: [],
  previousWidth: 0,
  previousHeight: 0,
  cursorRow: 0,
  hardwareCursorRow: 0,
  maxLinesRendered: 0,
  previousViewportTop: 0,
}

const ASK_FOR_CURSOR = '\u001b[6n'
// biome-ignore lint/suspicious/noControlCharactersInRegex: the answer of the terminal begins with one
const CURSOR_REPORT = /^\u001b\[(\d+);\d+R$/
/** Milliseconds without another resize before drawing: tmux reports resizes up to 250 ms after it has moved the lines. */
const SETTLE_MS = 300
/** Milliseconds that the terminal has to report its cursor position. */
const ANSWER_MS = 400

/** Milliseconds after the start in which the first read may contain keys typed before the start. */
const EARLY_KEYS_MS = 1_000
/** Erases the current line, in which the terminal has echoed what was typed before the start. */
const ERASE_LINE = '\r\u001b[K'

const ENTER_SECOND_SCREEN = '\u001b[?1049h\u001b[2J\u001b[H'
const LEAVE_SECOND_SCREEN = '\u001b[?1049l'

export class ScrollSafeTui extends TuiMainScreen {
  /** Called when the first `count` lines of the document have scrolled away. They are no longer part of the document. */
  onScroll: (count: number) => void = () => {}
  /** The screen row at which the document begins, if known. Rows above it are not part of the document and stay unchanged. */
  topRow = 0
  private cursorColumn = 0
  private isOnSecondScreen = false
  /** The size for which the cursor position is being asked. Nothing is drawn until the answer or the end of its time limit. */
  private asked: { readonly size: string; readonly timer: NodeJS.Timeout } | null = null
  private reportsDue = 0
  /** Until then, the first read may contain keys typed before the start; 0 after the first read. */
  private earlyUntil = 0

  constructor(terminal: Terminal) {
    super(terminal)
    this.addInputListener((data) => {
      if (this.earlyUntil === 0) return undefined
      const isEarly = Date.now() < this.earlyUntil
      // Everything typed before the start arrives in one read.
      setImmediate(() => {
        this.earlyUntil = 0
      })
      // Before a program reads single keys, the terminal converts Enter to a line feed.
      return isEarly && data === '\n' ? { data: '\r' } : undefined
    })
    this.addInputListener((data) => {
      const row = CURSOR_REPORT.exec(data)?.[1]
      if (row === undefined || this.reportsDue === 0) return undefined
      this.reportsDue -= 1
      // An answer to an older question may be for another size.
      if (this.reportsDue === 0 && this.asked?.size === this.readSize()) this.drawAfterResize(Number(row) - 1)
      return { consume: true }
    })
  }

  override start(): void {
    this.earlyUntil = Date.now() + EARLY_KEYS_MS
    this.terminal.write(ERASE_LINE)
    super.start()
  }

  override render(width: number): string[] {
    const lines = super.render(width)
    const line = lines.findLast((each) => each.includes(CURSOR_MARKER))
    this.cursorColumn = line === undefined ? 0 : visibleWidth(line.slice(0, line.indexOf(CURSOR_MARKER)))
    return lines
  }

  protected override doRender(): void {
    this.readSize()
    const isOurs = !this.stopped && !this.isOnSecondScreen
    if (isOurs && (this.asked !== null || this.isResized())) {
      this.askForCursor()
      return
    }
    super.doRender()
    if (isOurs) this.leaveScrolledLines()
  }

  /** Erases the visible document, and leaves the cursor where the document began. */
  eraseDocument(): void {
    const { previousLines, hardwareCursorRow } = this.captureRenderState()
    if (previousLines.length === 0) return
    const up = (rows: number): string => (rows > 0 ? `\u001b[${rows}A` : '')
    const rows = previousLines.map(() => '\u001b[2K').join('\r\n')
    this.terminal.write(`\r${up(hardwareCursorRow)}${rows}\r${up(previousLines.length - 1)}`)
    this.restoreRenderState(NOTHING_DRAWN)
  }

  /** Draws the last frame, even right after a resize, and stops with the cursor in its last line. */
  stopAfterLastFrame(): void {
    try {
      if (this.asked !== null || this.isResized()) this.drawAfterResize(null)
      else this.renderNow()
      const { previousLines, hardwareCursorRow } = this.captureRenderState()
      const down = previousLines.length - 1 - hardwareCursorRow
      this.terminal.write(`\r${down > 0 ? `\u001b[${down}B` : ''}`)
    } finally {
      this.stop({ preserveScreen: true })
    }
  }

  /** Begins to draw on the terminal's second screen. Returns a function that goes back to the first screen, which is unchanged. */
  enterSecondScreen(): () => void {
    this.renderNow()
    const drawn = this.captureRenderState()
    this.terminal.write(ENTER_SECOND_SCREEN)
    this.isOnSecondScreen = true
    this.restoreRenderState(NOTHING_DRAWN)
    return () => {
      this.terminal.write(LEAVE_SECOND_SCREEN)
      this.isOnSecondScreen = false
      this.restoreRenderState(drawn)
    }
  }

  private readSize(): string {
    refreshSize(process.stdout)
    return `${this.terminal.columns}x${this.terminal.rows}`
  }

  private isResized(): boolean {
    const { previousWidth, previousHeight } = this.captureRenderState()
    const { columns, rows } = this.terminal
    return previousWidth > 0 && (previousWidth !== columns || previousHeight !== rows)
  }

  private askForCursor(): void {
    const size = this.readSize()
    if (this.asked?.size === size) return
    clearTimeout(this.asked?.timer)
    const ask = (): void => {
      this.asked = { size, timer: setTimeout(() => this.drawAfterResize(null), ANSWER_MS) }
      this.reportsDue += 1
      this.terminal.write(ASK_FOR_CURSOR)
    }
    this.asked = { size, timer: setTimeout(ask, SETTLE_MS) }
  }

  /** `cursorRow`: the screen row of the cursor; null if the terminal does not report it. */
  private drawAfterResize(cursorRow: number | null): void {
    clearTimeout(this.asked?.timer)
    this.asked = null
    this.reportsDue = 0
    if (this.stopped || this.isOnSecondScreen) return
    const { columns, rows } = this.terminal
    const { previousLines, hardwareCursorRow } = this.captureRenderState()
    const heights = previousLines.map((line) => Math.max(1, Math.ceil(visibleWidth(line) / columns)))
    const above = heights.slice(0, hardwareCursorRow).reduce((sum, height) => sum + height, 0)
    const row = cursorRow ?? Math.min(hardwareCursorRow, rows - 1)
    let top = row - above - Math.floor(this.cursorColumn / columns)
    let scrolled = 0
    // If only the beginning of a line has scrolled away, the whole line is left to the terminal.
    for (; top < 0 && scrolled < heights.length; scrolled += 1) top += heights[scrolled] ?? 1
    this.onScroll(scrolled)
    this.topRow = Math.min(Math.max(0, top), rows - 1)
    let erase = ''
    for (let line = this.topRow; line < rows; line += 1) erase += `\u001b[${line + 1};1H\u001b[2K`
    this.terminal.write(`${erase}\u001b[${this.topRow + 1};1H`)
    this.restoreRenderState({ ...NOTHING_DRAWN, previousWidth: columns, previousHeight: rows })
    this.renderNow()
  }

  private leaveScrolledLines(): void {
    // Without a cursor in the input, the cursor would stay at the end of a line, whose width must be known at a resize.
    if (this.cursorColumn === 0) this.terminal.write('\r')
    const state = this.captureRenderState()
    const count = state.previousViewportTop
    this.topRow = Math.max(0, Math.min(this.topRow, this.terminal.rows - state.previousLines.length))
    if (count === 0) return
    this.restoreRenderState({
      ...state,
      previousLines: state.previousLines.slice(count),
      cursorRow: state.cursorRow - count,
      hardwareCursorRow: state.hardwareCursorRow - count,
      maxLinesRendered: Math.max(0, state.maxLinesRendered - count),
      previousViewportTop: 0,
    })
    this.onScroll(count)
  }
}

/** Reads the size from the terminal, because the signal for a resize may come after the next frame. */
function refreshSize(output: NodeJS.WriteStream & { readonly _refreshSize?: () => void }): void {
  output._refreshSize?.()
}
