/**
 * Recorded sessions, encoded for both of OpenAI's APIs: no call without its result or the other way round, and a request only
 * appends to the one before it. Skips where the folders are absent.
 */
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findForeignResponseIds, hideResponseParts } from '@tidemark/core/context/context-entry'
import { buildContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { appendRecord, emptySessionLog, type SessionLog } from '@tidemark/core/log/session-log'
import { sampleCases } from '@tidemark/core/testing'
import { chatCodec } from '@tidemark/wire/openai/chat-codec'
import { responsesCodec } from '@tidemark/wire/openai/responses-codec'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { readLog } from 'tidemark/logs'
import { describe, expect, it } from 'vitest'

const FOLDERS = ['transcripts', 'transcripts-2'].map(
  (name) => new URL(`../../../shared/${name}/`, import.meta.url),
)

const files = sampleCases(
  FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.jsonl.gz'))
      .map((name) => new URL(name, folder)),
  ),
  4,
)

/** Formats that have a reader. */
const isReadable = ({ name }: { readonly name: string }): boolean => /claude-code|codex/.test(name)

/** Places at which a log is cut. */
const CUTS = 12

/** Returns the messages of each of some states of a log, without what only its provider can read. */
async function listStates(file: URL): Promise<readonly (readonly ApiMessage[])[]> {
  const log = await readLog(fileURLToPath(file), { withAgents: false })
  // Logs of programs that no reader knows.
  const records = log.ok ? log.records.map(({ record }) => record) : []
  const states: (readonly ApiMessage[])[] = []
  let session: SessionLog = emptySessionLog()
  for (const [index, record] of records.entries()) {
    session = appendRecord(session, record)
    const isCut = index % Math.ceil(records.length / CUTS) === 0 || index === records.length - 1
    if (isCut) states.push(toMessages(session))
  }
  return states.filter((messages) => messages.length > 0)
}

function toMessages(session: SessionLog): readonly ApiMessage[] {
  const entries = buildContextView(session).entries.toArray()
  const foreign = findForeignResponseIds(entries, { vendor: 'openai', account: null })
  return toApiMessages(
    flattenContext({ entries: AppendList.of(hideResponseParts(entries, foreign, 'opaque')) }),
  )
}

function listItems(codec: ProviderCodec, messages: readonly ApiMessage[]): readonly JsonObject[] {
  const body = codec.toBody({ model: 'gpt-5.4', messages })
  const list = body.input ?? body.messages
  return Array.isArray(list) ? (list as readonly JsonObject[]) : []
}

/** Ids of calls and of results, in order. */
function listIds(items: readonly JsonObject[]): {
  readonly calls: readonly unknown[]
  readonly results: readonly unknown[]
} {
  const calls = items.flatMap(({ type, call_id: id, tool_calls: list }) =>
    Array.isArray(list)
      ? list.map((call) => (isObject(call) ? call.id : undefined))
      : type === 'function_call' || type === 'custom_tool_call'
        ? [id]
        : [],
  )
  const results = items.flatMap(({ type, role, call_id: id, tool_call_id: answered }) =>
    role === 'tool' ? [answered] : String(type).endsWith('_call_output') ? [id] : [],
  )
  return { calls, results }
}

describe.skipIf(files.length === 0)('recorded sessions for both of OpenAI’s APIs', () => {
  it.each(files.map((file) => ({ name: file.pathname.split('/').slice(-2).join('/'), file })))(
    '$name has no orphan at any place, and each message has the same items whatever follows',
    async ({ name, file }) => {
      const states = await listStates(file)
      for (const codec of [responsesCodec, chatCodec]) {
        let count = 0
        for (const messages of states) {
          const items = listItems(codec, messages)
          const { calls, results } = listIds(items)
          expect(results.toSorted()).toEqual(calls.toSorted())
          count += calls.length
          const texts = items.map((item) => JSON.stringify(item))
          const ends = messages.flatMap(({ role }, index) => (role === 'user' ? [index + 1] : []))
          const some = ends.filter((_, index) => index % Math.ceil(ends.length / CUTS) === 0)
          for (const end of some) {
            const before = listItems(codec, messages.slice(0, end)).map((item) => JSON.stringify(item))
            expect(before).toEqual(texts.slice(0, before.length))
          }
        }
        expect(count > 0, codec.name).toBe(isReadable({ name }))
      }
    },
  )
})
