/** What users save to show to others: no text of the log gets into it, whichever field of whichever record it stands in. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selectExportedData } from '@tidemark/page/server/html-export'
import { drawPictureCard } from '@tidemark/page/server/picture-card'
import { findNamedLogs, listContextRemovals } from 'tidemark/internal'
import { inspectFiles, readLog } from 'tidemark/logs'
import { afterAll, describe, expect, it } from 'vitest'
import { COMMAND_SAMPLE } from './command-line.ts'
import { createHostileLog } from './hostile-log.ts'

type Value = null | boolean | number | string | readonly Value[] | { readonly [field: string]: Value }

const MARK = 'zqcanaryqz'
/** Fields by which a log is understood, with values that every log has. */
const STRUCTURE = /\.(?:type|subtype|role|timestamp|stop_reason)$/

const folder = mkdtempSync(join(tmpdir(), 'tidemark-page-privacy-'))
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

function parseLines(text: string): readonly Value[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const codexItem = (payload: Value): Value => ({ type: 'response_item', payload })
const codexUsage = (input: number): Value => ({
  input_tokens: input,
  cached_input_tokens: input - 500,
  output_tokens: 20,
  reasoning_output_tokens: 0,
  total_tokens: input + 20,
})
const codexCall = (id: string, input: number): readonly Value[] => [
  codexItem({
    type: 'function_call',
    name: 'shell',
    arguments: `{"command":["cat","${id}.ts"]}`,
    call_id: id,
  }),
  codexItem({ type: 'function_call_output', call_id: id, output: `export const ${id} = 1\n`.repeat(50) }),
  {
    type: 'event_msg',
    payload: {
      type: 'token_count',
      info: { total_token_usage: codexUsage(input), last_token_usage: codexUsage(input) },
    },
  },
]
const CODEX = [
  { type: 'session_meta', payload: { id: 's1', cwd: '/home/user/boat', git: { branch: 'ada/fix' } } },
  { type: 'turn_context', payload: { model: 'gpt-5.4', cwd: '/home/user/boat' } },
  codexItem({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Caulk the hull.' }] }),
  ...codexCall('hull', 3_000),
  ...codexCall('mast', 4_000),
  { type: 'compacted', payload: { message: 'The hull is caulked.', replacement_history: [] } },
  codexItem({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Go on.' }] }),
  ...codexCall('hull', 2_000),
].map((line, index) => ({
  timestamp: new Date(Date.UTC(2026, 2, 9) + index * 1_000).toISOString(),
  ...(line as object),
}))

const LOGS: readonly (readonly [string, readonly Value[]])[] = [
  ['Tidemark', parseLines(readFileSync(COMMAND_SAMPLE, 'utf8'))],
  ['Claude Code', parseLines(createHostileLog().text)],
  ['Codex', CODEX],
]

/** Replaces each string by what `change` makes of it and its place, such as `user.message.content[].text`. */
function mapStrings(value: Value, place: string, change: (text: string, place: string) => string): Value {
  if (typeof value === 'string') return change(value, place)
  if (Array.isArray(value)) return value.map((part) => mapStrings(part, `${place}[]`, change))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value)
  return Object.fromEntries(fields.map(([key, part]) => [key, mapStrings(part, `${place}.${key}`, change)]))
}

function nameRecord(line: Value): string {
  const { type, subtype, payload } = line as { readonly [field: string]: Value }
  const inner = (payload as { readonly type?: Value } | undefined)?.type
  return [type, subtype, inner].filter((part) => typeof part === 'string').join(':')
}

function listPlaces(lines: readonly Value[]): readonly string[] {
  const places = new Set<string>()
  for (const line of lines)
    mapStrings(line, nameRecord(line), (text, place) => {
      places.add(place)
      return text
    })
  return [...places]
}

function mark(lines: readonly Value[], isMarked: (place: string) => boolean): readonly Value[] {
  return lines.map((line) =>
    mapStrings(line, nameRecord(line), (text, place) => (isMarked(place) ? `${text}${MARK}` : text)),
  )
}

interface SavedFiles {
  /** The data of the saved page as JSON. */
  readonly data: string
  readonly card: string
}

async function save(lines: readonly Value[]): Promise<SavedFiles | null> {
  const path = join(folder, 'ada-lovelace.jsonl')
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const log = await readLog(path)
  const { sessions } = await inspectFiles((await findNamedLogs([path])).logs)
  const [report] = sessions
  if (!log.ok || report === undefined) return null
  const undo = { target: { id: `${MARK}`, kind: 'compact' as const }, why: `The session is open in ${MARK}.` }
  const page = { id: MARK, report, isLive: false, undo }
  const data = selectExportedData({ page, departures: listContextRemovals(log), texts: null })
  return { data: JSON.stringify(data), card: drawPictureCard(report) }
}

describe.each(LOGS)('what is saved of a log of %s', (_, lines) => {
  it('has none of its texts, names, paths and ids, if all of them are marked', async () => {
    const saved = await save(mark(lines, (place) => !STRUCTURE.test(place)))
    expect(JSON.parse(saved?.data ?? '').departures.length).toBeGreaterThan(0)
    expect(saved?.data).not.toContain(MARK)
    expect(saved?.card).not.toContain(MARK)
    expect(saved?.data).not.toMatch(/lovelace|\/home|\/tmp/)
  })

  it('has none of a single field, whatever the others say', async () => {
    const leaks: string[] = []
    for (const place of listPlaces(lines).filter((each) => !each.endsWith('.timestamp'))) {
      const saved = await save(mark(lines, (each) => each === place))
      if (saved !== null && `${saved.data}${saved.card}`.includes(MARK)) leaks.push(place)
    }
    expect(leaks).toEqual([])
  })
})
