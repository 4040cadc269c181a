/**
 * A process of its own that updates the notes of a session in a folder shared with others. It obeys lines: `update
 * SECONDS` begins an update, for which a claim of that age is dead; `answer` lets the model answer. It prints `ready`,
 * `asked` when the model is asked for notes, and `ended` with the types of the events of the update.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { updateNotesIfDue } from '@tidemark/core/background/update-notes'
import type { Model } from '@tidemark/core/engine/ports'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import {
  createFakeModel,
  createTestCompaction,
  createTestHost,
  runSingleTurn,
  runToEnd,
} from '@tidemark/core/testing'
import { createNotesFolder } from '../../packages/tidemark/src/storage/notes-folder.ts'

export interface RaceInput {
  readonly home: string
  readonly name: string
}

export const RACE_SESSION = 'talk'
const LONG = 'abc '.repeat(12_000)

const given = process.argv[2]
if (given?.startsWith('{') === true) {
  const { home, name }: RaceInput = JSON.parse(given)
  const lines = createInterface({ input: process.stdin })
  const notes = `<section name="Current state">\nWritten by ${name}.\n</section>`
  const first = createFakeModel([{ blocks: [{ type: 'text', text: 'Yes.' }] }])
  const second = createFakeModel(() => ({ blocks: [{ type: 'text', text: notes }] }))
  const model: Model = {
    async *stream(call, signal) {
      if (first.calls.length === 0) return yield* first.stream(call, signal)
      console.log('asked')
      for (;;) if (String(await once(lines, 'line')) === 'answer') return yield* second.stream(call, signal)
    },
  }
  const compaction = createTestCompaction({}, { notes: { store: createNotesFolder({ home }), local: null } })
  const clock = { now: Date.now, sleep: (ms: number) => wait(ms) }
  const host = createTestHost({ model, compaction, clock })
  const start = await readSessionState(host.journal, RACE_SESSION)
  const { state } = await runToEnd(runSingleTurn(start, { prompt: LONG }, host))
  lines.on('line', async (line) => {
    const [order, seconds] = line.split(' ')
    if (order !== 'update') return
    const policy = createPolicy({ notes: { deadAfterSeconds: Number(seconds) } })
    const types: string[] = []
    const turn = { state, host: { ...host, policy }, signal: undefined }
    await runToEnd(updateNotesIfDue(turn, state), ({ type }) => void types.push(type))
    console.log(`ended ${types.filter((type) => type.startsWith('notes-')).join()}`)
  })
  console.log('ready')
}
