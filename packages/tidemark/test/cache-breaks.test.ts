/**
 * Real sessions, read where they lie: every break that is reported processed more than 2,000 tokens again by the
 * log's own figures, and none follows a compaction or a clearing. Skips where the folder is absent.
 */

import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isRewriteBoundary } from '@tidemark/core/log/record'
import { sampleCases } from '@tidemark/core/testing'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { describe, expect, it } from 'vitest'
import { createCacheReport } from '../src/inspect/cache-breaks.ts'
import { type LoggedCall, listConversationCalls, toResponseKey } from '../src/inspect/logged-calls.ts'
import type { LoggedCacheBreak } from '../src/inspect/report.ts'
import { readLog } from '../src/logs/read-log.ts'

const folder = new URL('../../../../shared/transcripts/', import.meta.url)
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.jsonl.gz')) : []

interface Found {
  readonly breaks: readonly LoggedCacheBreak[]
  readonly calls: readonly LoggedCall[]
  /** Lines of responses that are the first behind a compaction or a clearing. */
  readonly behindActs: ReadonlySet<number>
}

async function found(name: string): Promise<Found> {
  const log = await readLog(fileURLToPath(new URL(name, folder)))
  if (!log.ok) throw new Error(log.message)
  const records = log.records.map(({ record }) => record)
  const calls = listConversationCalls(records, { elsewhere: new Set() })
  const behindActs = new Set<number>()
  let isBehind = false
  for (const { record, line } of log.records) {
    if (isRewriteBoundary(record)) isBehind = true
    if (toResponseKey(record) === null || !isBehind) continue
    behindActs.add(line)
    isBehind = false
  }
  return { breaks: createCacheReport(log, calls, modelCatalogue).cacheBreaks, calls, behindActs }
}

function anew({ usage }: LoggedCall): number {
  return usage === null ? 0 : usage.input + usage.writes.short + usage.writes.long
}

describe.skipIf(files.length === 0)(
  'breaks of real sessions (skipped: no shared/transcripts beside the project)',
  () => {
    it.each(sampleCases(files, 4))('%s', async (name) => {
      const { breaks, calls, behindActs } = await found(name)
      const wrong = breaks.filter(({ at, tokensRewritten, line }) => {
        const call = calls.find((each) => each.at === at && anew(each) >= tokensRewritten)
        return call === undefined || tokensRewritten <= 2_000 || behindActs.has(line)
      })
      expect(wrong).toEqual([])
    })

    it('are found, and most have a cause that the log shows', async () => {
      const all = (await Promise.all(files.map(found))).flatMap(({ breaks }) => breaks)
      const explained = all.filter(({ cause }) => cause !== 'server-side')
      expect(explained.length / all.length).toBeGreaterThan(0.7)
    })
  },
)
