/**
 * Compactions without a model at each logged compaction of real sessions (at the end of those that have none), read
 * where they lie: what the next request says still holds every changed file, every message of the person and every
 * last error of the whole session before it. Skips where the folder is absent.
 */

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ApiMessage } from '@tidemark/core/context/payload'
import { isCompactBoundary, isKnownRecord, type KnownRecord } from '@tidemark/core/log/record'
import { sampleCases } from '@tidemark/core/testing'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { listStrings } from 'tidemark/internal'
import { compactLog, type LogContents, readLog } from 'tidemark/logs'
import { describe, expect, it } from 'vitest'
import { heldIn, nextEdits, sessionFacts } from '../scripts/recorded/retention.ts'

const folder = fileURLToPath(new URL('../../shared/transcripts/', import.meta.url))
const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.jsonl.gz')) : []
const note = files.length === 0 ? ' (skipped: the folder is not there)' : ''

const TARGET = 52_000

async function opened(
  file: string,
): Promise<{ readonly log: LogContents; readonly records: readonly KnownRecord[] }> {
  const log = await readLog(join(folder, file), { withAgents: false })
  if (!log.ok) throw new Error(log.message)
  const records = log.records.map(({ record }) => record).filter(isKnownRecord)
  return { log, records: records.filter((record) => record.isSidechain !== true) }
}

function findingsIn(messages: readonly ApiMessage[], model: string): readonly unknown[] {
  const looked = lookUpModel(modelCatalogue, model)
  if (!looked.found) return [`the catalogue has no ${model}`]
  // The log of another program has no tools; a session that goes on declares its own.
  const tools = [{ name: 'Read', input_schema: { type: 'object' } }]
  return validateRequest(
    { model, max_tokens: 1_000, tools, messages: [...messages] },
    createProviderProfile(looked.model),
  )
}

describe.skipIf(files.length === 0)(`compacting recorded sessions where they were compacted${note}`, () => {
  it.each(sampleCases(files, 3))('%s', async (file) => {
    const { log, records } = await opened(file)
    const logged = records.flatMap((record, place) => (isCompactBoundary(record) ? [place] : []))
    for (const place of logged.length === 0 ? [records.length] : logged) {
      const before = records.slice(0, place)
      const outcome = await compactLog(log, { at: before.at(-1)?.uuid ?? '', target: TARGET })
      if (!outcome.ok) throw new Error(outcome.message)
      const { report } = outcome
      const text = listStrings(report.messages.map(({ content }) => content)).join('\n')
      const { editedFiles, userMessages, openErrors, settledErrors } = sessionFacts(before)
      const facts = [editedFiles, userMessages, openErrors, settledErrors]
      expect(facts.map((kind) => heldIn(text, kind))).toEqual(facts.map((kind) => kind.length))
      const { seen, named } = nextEdits(records, place, text)
      expect(named).toBe(seen)
      expect(report.tokensAfter).toBeLessThanOrEqual(TARGET)
      expect(findingsIn(report.messages, report.model)).toEqual([])
    }
  })
})
