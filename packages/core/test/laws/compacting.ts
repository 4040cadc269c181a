/** Generated stories played on the engine: work goes on, is compacted, and each compaction is looked at. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { append, type RewriteRefusal, type SummaryQuestion, type Unlinked } from '../../src/index.ts'
import { pinRecord } from '../../src/turn/pin.ts'
import { readyRequest } from '../../src/turn/turn.ts'
import { acted, carrierOf, compacted, LENIENT, type Roomy, roomy, SUMMARY } from '../engine/roomy.ts'
import { type Asked, askedOn, entryAt, type Story, stories, tellerOf } from './stories.ts'

export const TODO = { text: 'todo: mend the login' }
export const PLAN = { text: 'plan: read, then write' }

export interface Opened extends Roomy {
  readonly questions: SummaryQuestion[]
}

export async function opened(story: Story, profile = LENIENT, builder = tellerOf(story)): Promise<Opened> {
  const questions: SummaryQuestion[] = []
  const made = await roomy(builder.records, {
    profile,
    // Compactions alone: what is cleared by itself has laws of its own.
    policy: { compact: { carriersFirst: story.carriersFirst }, switches: { microcompactEnabled: false } },
    room: {
      carriers: [carrierOf('todos', TODO), carrierOf('plan', PLAN)],
      writeSummary: async (question) => {
        questions.push(question)
        return SUMMARY
      },
    },
  })
  await acted(made, readyRequest(made.run, 'prompt'))
  return { ...made, questions }
}

function large(id: string, thinks: boolean): readonly Unlinked[] {
  const thinking = thinks ? [{ type: 'thinking', thinking: 'hm', signature: `sign-${id}` }] : []
  const message = (name: string, content: readonly object[]): Unlinked =>
    ({
      type: 'assistant',
      message: { id: `${name}-${id}`, role: 'assistant', model: 'model-a', content },
    }) as Unlinked
  return [
    message('m', [
      ...thinking,
      { type: 'tool_use', id: `c-${id}`, name: 'Read', input: { file_path: `/src/${id}.ts` } },
    ]),
    {
      type: 'user',
      message: {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: `c-${id}`, content: 'abc '.repeat(900) }],
      },
    },
    message('n', [{ type: 'text', text: `read ${id}` }]),
  ]
}

let count = 0

/** Work goes on: rounds, a pin, words of the person's that nobody answers. */
export async function goesOn(made: Opened, asked: Asked): Promise<readonly string[]> {
  TODO.text = `todo: mend the login, ${count} done`
  for (let round = 0; round < asked.rounds; round += 1) {
    count += 1
    await acted(made, append(made.run, large(String(count), round % 2 === 0)))
  }
  const target = asked.pin === null ? undefined : entryAt(made.run.state, asked.pin)?.record.uuid
  if (target !== undefined) await acted(made, pinRecord(made.run, target, true))
  const words = Array.from({ length: asked.prompts }, (_, index) => `unanswered ${count} ${index} "q" é`)
  for (const content of words)
    await acted(made, append(made.run, [{ type: 'user', message: { role: 'user', content } }]))
  return words
}

const NO_COMPACTION: ReadonlySet<RewriteRefusal> = new Set<RewriteRefusal>([
  'empty-side',
  'pending-call',
  'nothing-to-summarise',
  'not-smaller',
  'empty-conversation',
])

/** Each compaction of a story, with what was before it. */
async function each(
  story: Story,
  check: (
    made: Opened,
    step: {
      readonly before: Opened['run']['state']
      readonly asked: Asked
      readonly words: readonly string[]
      readonly question: SummaryQuestion
    },
  ) => Promise<void> | void,
  profile = LENIENT,
): Promise<void> {
  const made = await opened(story, profile)
  for (const asked of story.acts) {
    const words = await goesOn(made, asked)
    const before = made.run.state
    const end = await compacted(made, askedOn(before, asked))
    if (!end.ok) {
      expect(NO_COMPACTION).toContain(end.reason)
      expect(made.run.state.view).toBe(before.view)
      continue
    }
    done += 1
    const question = made.questions.at(-1)
    if (question === undefined) throw new Error('nobody was asked for a summary')
    await check(made, { before, asked, words, question })
  }
}

let done = 0

/** Of every compaction of generated stories, of which there must be enough. */
export async function holds(check: Parameters<typeof each>[1], profile = LENIENT): Promise<void> {
  done = 0
  await fc.assert(
    fc.asyncProperty(stories(), (story) => each(story, check, profile)),
    { numRuns: 30 },
  )
  expect(done).toBeGreaterThan(25)
}
