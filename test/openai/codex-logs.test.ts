/** Logs of Codex are inspected with the prices and the prompt cache of the model that they name. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lookUpModel, modelCatalogue } from 'tidemark/catalogue'
import { inspectLog, readLog } from 'tidemark/logs'
import { expect, it, onTestFinished } from 'vitest'

/** Minutes after ten at which a call was made, with the tokens that it read from the cache and wrote to it. */
interface Call {
  readonly minute: number
  readonly read: number
  readonly written: number
}

const CALLS: readonly Call[] = [
  { minute: 0, read: 0, written: 50_000 },
  { minute: 5, read: 50_000, written: 2_000 },
  { minute: 25, read: 52_000, written: 2_000 },
  { minute: 70, read: 0, written: 56_000 },
  { minute: 90, read: 0, written: 58_000 },
]
const OUTPUT = 100

/** Returns the lines of a rollout with a command for each call. */
function createRollout(model: string): string {
  const total = { input_tokens: 0, cached_input_tokens: 0, cache_write_input_tokens: 0, output_tokens: 0 }
  const toLine = (at: number, type: string, payload: object): string =>
    JSON.stringify({ timestamp: new Date(Date.UTC(2026, 9, 1, 10) + at).toISOString(), type, payload })
  const start = [
    toLine(0, 'session_meta', { id: 'boat', cwd: '/projects/boat', cli_version: '0.166.0' }),
    toLine(0, 'turn_context', { model, cwd: '/projects/boat' }),
    toLine(0, 'response_item', {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: 'Fix the boat.' }],
    }),
  ]
  const rest = CALLS.flatMap(({ minute, read, written }, index) => {
    const last = {
      input_tokens: read + written,
      cached_input_tokens: read,
      cache_write_input_tokens: written,
      output_tokens: OUTPUT,
    }
    for (const name of Object.keys(last) as (keyof typeof last)[]) total[name] += last[name]
    const at = minute * 60_000
    // A command takes until the next call.
    const end = (CALLS[index + 1]?.minute ?? minute) * 60_000 + 1
    const id = `call_${index}`
    const call = { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}', call_id: id }
    const info = { total_token_usage: { ...total }, last_token_usage: last, model_context_window: 200_000 }
    return [
      toLine(at + 2_000, 'response_item', call),
      toLine(at + 2_001, 'event_msg', { type: 'token_count', info }),
      toLine(end, 'response_item', { type: 'function_call_output', call_id: id, output: 'ok' }),
    ]
  })
  return `${[...start, ...rest].join('\n')}\n`
}

async function inspect(model: string) {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-codex-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'rollout-boat.jsonl')
  writeFileSync(file, createRollout(model))
  const log = await readLog(file)
  if (!log.ok) throw new Error(log.message)
  return inspectLog(log, { catalogue: modelCatalogue, toDay: (at) => at.slice(0, 10), seenCalls: new Set() })
}

it('a Codex log of a model with cache writes costs what they cost, and its breaks are judged by their lifetime', async () => {
  const session = await inspect('gpt-6-sol')
  const found = lookUpModel(modelCatalogue, 'gpt-6-sol')
  const prices = found.found ? found.model.prices : null
  const sum = (pick: (call: Call) => number): number => CALLS.reduce((total, call) => total + pick(call), 0)
  const dollars =
    sum(({ read }) => read) * (prices?.cacheRead ?? Number.NaN) +
    sum(({ written }) => written) * (prices?.writeShort ?? Number.NaN) +
    CALLS.length * OUTPUT * (prices?.output ?? Number.NaN)
  expect(session.money.spent).toBeCloseTo(dollars / 1e6, 6)
  expect(session.money.writeSeconds).toEqual({ write5m: 1_800, write1h: null })
  expect(session.cacheBreaks.map(({ at, cause, evidence }) => [at.slice(11, 16), cause, evidence])).toEqual([
    ['11:10', 'expired', expect.stringContaining('45 min')],
    ['11:30', 'server-side', expect.stringContaining('lives 30m')],
  ])
  expect(session.hourWouldSave).toBe(null)
})
