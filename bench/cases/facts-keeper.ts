/** A record added to the keeper of facts after 10,000 others, against one after 100: its cost must not grow with the log. */
import { createFactsKeeper } from '@tidemark/core/facts/session-facts'
import type { KnownRecord } from '@tidemark/core/log/record'
import type { BenchCase } from '../harness/bench-case.ts'

/** Records that are added in one sample, so that the keeper stays about as long as it was. */
const ADDED = 100

export const benchCase: BenchCase = {
  name: 'facts-keeper-add',
  compares: 'a record added to the keeper of facts at 10,000 records with one at 100',
  bound: { atMost: 1.5 },
  rounds: 15,
  prepare() {
    const sides = { subject: prepareSide(10_000), baseline: prepareSide(100) }
    return {
      subject: sides.subject.add,
      baseline: sides.baseline.add,
      calls: { subject: 1, baseline: 1 },
      before: { subject: sides.subject.reset, baseline: sides.baseline.reset },
    }
  },
}

interface Side {
  add(): void
  /** Makes a keeper anew and feeds it, so that every sample begins with the same number of records. */
  reset(): void
}

function prepareSide(records: number): Side {
  let keeper = createFactsKeeper()
  const earlier = Array.from({ length: records }, (_, index) => recordAt(index))
  const next = Array.from({ length: ADDED }, (_, index) => recordAt(records + index))
  return {
    reset() {
      keeper = createFactsKeeper()
      for (const record of earlier) keeper.add(record)
    },
    add() {
      for (const record of next) keeper.add(record)
    },
  }
}

/** A session of a coding agent: prompts, texts, edits of many files, commands that pass and fail, todo lists. */
function recordAt(index: number): KnownRecord {
  const common = {
    uuid: `record-${index}`,
    parentUuid: index === 0 ? null : `record-${index - 1}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    sessionId: 's',
    cwd: '/home/user/project',
  }
  if (index % 50 === 0)
    return { ...common, type: 'user', message: { role: 'user', content: `Now do part ${index}.` } }
  if (index % 2 === 0) {
    const failed = index % 10 === 0 ? { is_error: true } : {}
    const content = `${'a line of output\n'.repeat(20)}${index} passed`
    const result = { type: 'tool_result', tool_use_id: `call-${index - 1}`, content, ...failed }
    return { ...common, type: 'user', message: { role: 'user', content: [result] } }
  }
  const text = {
    type: 'text',
    text: `I decided to use part ${index}, because the cause was in line ${index}.`,
  }
  const call = { type: 'tool_use', id: `call-${index}`, ...callAt(index) }
  const message = {
    id: `message-${index}`,
    role: 'assistant',
    model: 'model-a',
    content: [text, call],
  } as const
  return { ...common, type: 'assistant', message }
}

function callAt(index: number): { readonly name: string; readonly input: object } {
  const file = `/home/user/project/src/part-${index % 40}/file-${index % 900}.ts`
  switch (Math.floor(index / 2) % 4) {
    case 0:
      return { name: 'Bash', input: { command: `npm test -- part-${index}` } }
    case 1:
      return {
        name: 'Edit',
        input: { file_path: file, old_string: 'a', new_string: `function part${index}() {}` },
      }
    case 2:
      return { name: 'Read', input: { file_path: file } }
    default:
      return { name: 'TodoWrite', input: { todos: [{ content: `part ${index}`, status: 'pending' }] } }
  }
}
