/**
 * Real sessions, read where they lie: every line placed, views a provider would take, nothing lost that
 * hangs beside the chain of parents, logged boundaries honoured. Skips where the folder is absent.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { buildContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { decodeRecord } from '@tidemark/core/log/decode-record'
import type { JsonObject } from '@tidemark/core/log/json'
import {
  isCompactBoundary,
  isMicrocompactBoundary,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
import { appendRecord, emptySessionLog, type SessionLog } from '@tidemark/core/log/session-log'
import { sampleCases } from '@tidemark/core/testing'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'

const folder = new URL('../../shared/transcripts/', import.meta.url)
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.jsonl.gz')) : []

function recordsIn(name: string): { readonly lines: number; readonly records: readonly SessionRecord[] } {
  const lines = gunzipSync(readFileSync(new URL(name, folder)))
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
  const decoded = lines.map((line) => decodeRecord(JSON.parse(line)))
  return { lines: lines.length, records: decoded.flatMap((item) => (item.ok ? [item.record] : [])) }
}

/** A log may stop after the model's last word; a thought alone in mid-conversation stays (the provider may need it). */
const profile = defineMessagesProfile({
  roles: { prefill: 'allowed', consecutive: 'merged' },
  thinking: { closing: 'not-at-end' },
})

function toolsIn(messages: readonly ApiMessage[]): readonly JsonObject[] {
  const uses = messages.flatMap((message) => toBlocks(message.content).filter(isToolUse))
  return [...new Set(uses.map((block) => block.name))].map((name) => ({
    name,
    input_schema: { type: 'object' },
  }))
}

function foldOf(records: readonly SessionRecord[]): SessionLog {
  return records.reduce<SessionLog>((session, record) => appendRecord(session, record), emptySessionLog())
}

/** Tool results on the branch that a walk from the newest record along the parents does not meet. */
function besideTheChain(session: SessionLog): number {
  const chain = new Set<number>()
  for (let index = session.newestRecord; index >= 0; index = session.parents.at(index) ?? -1) chain.add(index)
  return [...session.branch].filter(
    (index) => !chain.has(index) && resultsIn(session.records.at(index)).length > 0,
  ).length
}

function resultsIn(record: SessionRecord | undefined): readonly string[] {
  if (record?.type !== 'user') return []
  const { content } = (record as KnownRecord & { type: 'user' }).message
  return toBlocks(content)
    .filter(isToolResult)
    .map((block) => block.tool_use_id)
}

/** Every result of the log stands in the view at some time: right before each rewrite, or at the end. */
function resultsEverShown(records: readonly SessionRecord[]): ReadonlySet<string> {
  const shown = new Set<string>()
  let session = emptySessionLog()
  for (const [index, record] of records.entries()) {
    const next = records[index + 1]
    session = appendRecord(session, record)
    if (next !== undefined && !isCompactBoundary(next)) continue
    for (const message of toApiMessages(flattenContext(buildContextView(session)))) {
      for (const block of toBlocks(message.content)) if (isToolResult(block)) shown.add(block.tool_use_id)
    }
  }
  return shown
}

describe.skipIf(files.length === 0)(
  `real sessions (${folder.pathname.split('/').slice(-3).join('/')})`,
  () => {
    const agent = files.filter((name) => name.startsWith('claude-code'))

    it.each(sampleCases(files, 4))('%s: every line is placed', (name) => {
      const { lines, records } = recordsIn(name)
      expect([records.length, foldOf(records).records.length]).toEqual([lines, lines])
    })

    it.each(sampleCases(agent, 4))(
      '%s: the view is valid after repair, at every boundary and at the end',
      (name) => {
        const { records } = recordsIn(name)
        let session = emptySessionLog()
        for (const [index, record] of records.entries()) {
          session = appendRecord(session, record)
          const next = records[index + 1]
          if (next !== undefined && !isCompactBoundary(next) && !isMicrocompactBoundary(next)) continue
          const messages = toApiMessages(flattenContext(buildContextView(session)))
          expect(
            validateRequest({ model: 'any', max_tokens: 1, messages, tools: toolsIn(messages) }, profile),
          ).toEqual([])
        }
      },
    )

    it('results beside the chain of parents are not lost', () => {
      const counts = agent.map((name) => {
        const { records } = recordsIn(name)
        const logged = new Set(records.filter((record) => record.isSidechain !== true).flatMap(resultsIn))
        const shown = resultsEverShown(records)
        expect([...logged].filter((id) => !shown.has(id))).toEqual([])
        return besideTheChain(foldOf(records))
      })
      // What a walk along the parents alone would have lost.
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(100)
    })

    it.each(sampleCases(agent, 4))('%s: logged boundaries are honoured', (name) => {
      const { records } = recordsIn(name)
      const view = buildContextView(foldOf(records))
      const logged = records.filter((record) => isCompactBoundary(record) || isMicrocompactBoundary(record))
      expect(view.rewrites.map((act) => act.uuid)).toEqual(logged.map((record) => record.uuid))
      const last = records.findLast(isCompactBoundary)
      if (last !== undefined) expect(view.entries.at(0)?.record.uuid).toBe(last.uuid)
    })
  },
)
