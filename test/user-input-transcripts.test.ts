/**
 * Local compactions of real sessions, read where they lie: everything that the user typed, however it arrived, is in
 * the new context or on the receipt, and no notice of a program is quoted as the user's. What the user typed is read
 * here from the lines themselves, not by the engine. Skips where the folders are absent.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { isCompactBoundary } from '@tidemark/core/log/record'
import { sampleCases } from '@tidemark/core/testing'
import { redact } from '@tidemark/core/text/redact'
import { listStrings } from 'tidemark/internal'
import { compactLog, readLog } from 'tidemark/logs'
import { describe, expect, it } from 'vitest'

import { type LoggedLine, readTyped } from './support/typed-input.ts'

const TARGET = 52_000
const paths = ['transcripts', 'transcripts-2'].flatMap((name) => {
  const folder = fileURLToPath(new URL(`../../shared/${name}/`, import.meta.url))
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files.filter((file) => /^claude-code.*\.gz$/.test(file)).map((file) => `${folder}${file}`)
})
const note = paths.length === 0 ? ' (skipped: the folders are not there)' : ''

function readLines(path: string): readonly LoggedLine[] {
  const lines = gunzipSync(readFileSync(path)).toString('utf8').split('\n')
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LoggedLine)
}

describe.skipIf(paths.length === 0)(`what the user typed in recorded sessions${note}`, () => {
  it.each(sampleCases(paths, 3))('%s', async (path) => {
    const log = await readLog(path, { withAgents: false })
    if (!log.ok) throw new Error(log.message)
    const records = log.records.map(({ record }) => record)
    const at = records[records.findLastIndex(isCompactBoundary) - 1]?.uuid
    const outcome = await compactLog(log, { target: TARGET, ...(at === undefined ? {} : { at }) })
    if (!outcome.ok) throw new Error(outcome.message)
    const { messages, receipt } = outcome.report
    const view = listStrings(messages.map(({ content }) => content)).join('\n')
    const onReceipt = new Set(receipt.lost.userMessages.map(({ uuid }) => uuid))
    const lines = readLines(path)
    const end = at === undefined ? lines.length : lines.findIndex(({ uuid }) => uuid === at) + 1
    const gone = lines
      .slice(0, end)
      .flatMap((line) => readTyped(line).map((text) => [line.uuid ?? '', redact(text.trim())] as const))
      .filter(([uuid, text]) => !view.includes(text) && !onReceipt.has(uuid))
    expect(gone).toEqual([])
    const quoted = /\n6\. All user messages\n([\s\S]*?)\n7\. Pending tasks\n/.exec(view)?.[1] ?? ''
    expect(quoted).not.toMatch(/<task-notification>|<system-reminder>|<local-command-|\[Request interrupted/)
  })
})
