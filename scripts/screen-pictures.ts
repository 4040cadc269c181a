/**
 * Draws docs/images/screen-*.svg: the screen of `tidemark chat` as a terminal (tmux) shows it, with the session of the
 * tour. Needs tmux, no key and no network. Run with `npm run pictures`.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { screenToSvg } from './picture/screen-to-svg.ts'

const [COLUMNS, ROWS] = [100, 34]
const PATIENCE_MS = 60_000
/** A question takes no key in its first moment. */
const QUESTION_MS = 600

const folder = mkdtempSync(join(tmpdir(), 'tidemark-pictures-'))
const socket = join(folder, 'tmux')

function tmux(...args: readonly string[]): string {
  return execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], { encoding: 'utf8' })
}

function press(...keys: readonly string[]): void {
  tmux('send-keys', '-t', 's', ...keys)
}

async function send(text: string): Promise<void> {
  tmux('send-keys', '-t', 's', '-l', text)
  await wait(300)
  press('Enter')
}

/** Waits until the screen shows a text. */
async function see(wanted: RegExp): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  for (;;) {
    const seen = tmux('capture-pane', '-t', 's', '-p')
    if (wanted.test(seen)) return
    if (Date.now() > end) throw new Error(`The screen never had ${wanted}. It has:\n${seen}`)
    await wait(50)
  }
}

/** Draws what the screen shows now, as soon as the meter has followed. */
async function draw(name: string, title: string): Promise<void> {
  await wait(1_500)
  const frame = tmux('capture-pane', '-t', 's', '-p', '-e').trimEnd()
  const path = fileURLToPath(new URL(`../docs/images/screen-${name}.svg`, import.meta.url))
  writeFileSync(path, screenToSvg(frame, COLUMNS, title))
}

async function answerYes(): Promise<void> {
  await see(/1\. Yes/)
  await wait(QUESTION_MS)
  press('1')
}

/** Closes a panel. */
async function close(): Promise<void> {
  press('Escape')
  await see(/% left[\s\S]*spent/)
}

async function openTourSession(): Promise<void> {
  const command = fileURLToPath(new URL('../packages/cli/test/run-sources.ts', import.meta.url))
  const program = `${process.execPath} --conditions=tidemark-source ${command} tour`
  const variables = `LANG=C.UTF-8 NO_COLOR= TMPDIR=${folder} TIDEMARK_HOME=${folder}/home`
  tmux('new-session', '-d', '-s', 's', '-x', String(COLUMNS), '-y', String(ROWS), '-c', folder, 'sh')
  await send(`clear; ${variables} ${program}`)
  await see(/s: skip to the session/)
  press('s')
  await see(/This is the session of the tour[\s\S]*% left/)
}

async function drawAll(): Promise<void> {
  await openTourSession()
  await send('Please look at the orders of Monday again.')
  await see(/1\. Yes/)
  await draw('permission', 'A permission question with the change of the file, and the meter below it')
  await answerYes()
  await see(/I have read the report of Monday/)
  await send('/context')
  await see(/By class/)
  await draw('context', 'The panel of /context: what fills the window')
  await close()
  await send('/compact')
  await see(/Preview of the compaction/)
  await draw('compaction', 'The preview of a compaction')
  await close()
  await send('/model claude-opus-5')
  await see(/tokens for claude-opus-5/)
  await send('And those of Tuesday?')
  await answerYes()
  await see(/I have read the report of Tuesday/)
  await draw(
    'chat',
    'The screen of tidemark chat: tool calls, a cache break, a change of a file, the context meter',
  )
  press('C-t')
  await see(/What can be opened/)
  press('r')
  await see(/Rewrites of the context and cache breaks/)
  await wait(300)
  for (let key = 0; key < 9 && !/❯ ! Cache broke/.test(tmux('capture-pane', '-t', 's', '-p')); key += 1) {
    press('Down')
    await wait(200)
  }
  press('Enter')
  await see(/tokens/)
  await draw('cache-break', 'A cache break, opened: its cause, its price and the evidence')
}

try {
  await drawAll()
} finally {
  spawnSync('tmux', ['-S', socket, 'kill-server'])
  await wait(500)
  rmSync(folder, { recursive: true, force: true })
}
