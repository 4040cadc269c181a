/** How long a compaction holds the event loop in one piece must not grow with the session. */
import type { Session } from 'tidemark'
import type { BenchCase } from '../harness/bench-case.ts'
import { type BenchSummarizer, openCodingSession } from '../harness/coding-session.ts'
import { measureEventLoopHold } from '../harness/event-loop-hold.ts'

const LONG = 400_000
const SHORT = 40_000

async function compactInSteps(session: Session): Promise<void> {
  const plan = await session.planCompaction()
  if (!plan.ok) throw new Error(plan.message)
  const draft = await session.prepare(plan)
  if (!draft.ok) throw new Error(draft.message)
  const end = await session.commit(draft)
  if (!end.ok) throw new Error(end.message)
}

/** The context is above the auto-compact threshold, so that the next request compacts it first. */
async function compactWithNotes(session: Session): Promise<void> {
  let isDone = false
  session.on('sm-compact', () => {
    isDone = true
  })
  const next = await session.next({ tools: [] })
  if (!next.ok || !isDone) throw new Error('expected a compaction with the notes')
}

/** Compactions of one sample. The least of their longest holds counts: the garbage of others lengthens a hold by chance. */
const COPIES = 3

/** Creates a side of the contest: each call compacts other copies of the session, and resolves to the longest hold. */
function createSide(tokens: number, summarizer: BenchSummarizer): () => Promise<number> {
  const compact = summarizer === 'notes' ? compactWithNotes : compactInSteps
  const window = summarizer === 'notes' ? { window: 2 * LONG } : {}
  return async () => {
    const longest: number[] = []
    for (let copy = 0; copy < COPIES; copy += 1) {
      const session = await openCodingSession(tokens, { summarizer, ...window })
      globalThis.gc?.()
      longest.push((await measureEventLoopHold(() => compact(session))).longestMs)
      await session.close()
    }
    return Math.min(...longest)
  }
}

interface Sides {
  readonly compares: string
  readonly bound: BenchCase['bound']
  readonly subject: ReturnType<typeof createSide>
  readonly baseline: ReturnType<typeof createSide>
}

function createCase(summarizer: BenchSummarizer, createSides: () => Sides): BenchCase {
  const { compares, bound } = createSides()
  return {
    name: `compaction-hold-${summarizer}`,
    compares,
    bound,
    rounds: 7,
    prepare() {
      const { subject, baseline } = createSides()
      return {
        subject,
        baseline,
        calls: { subject: 1, baseline: 1 },
        isSelfTimed: true,
      }
    },
  }
}

/** Compares a compaction of a long session with one of a short session. */
function compareSizes(summarizer: BenchSummarizer): BenchCase {
  return createCase(summarizer, () => ({
    compares: `longest hold of the event loop by plan, prepare and commit at ${LONG} tokens with that at ${SHORT}`,
    bound: { atMost: 2 },
    subject: createSide(LONG, summarizer),
    baseline: createSide(SHORT, summarizer),
  }))
}

export const benchCases: readonly BenchCase[] = [
  compareSizes('local'),
  compareSizes('model'),
  createCase('notes', () => ({
    compares: `longest hold of the event loop by a compaction with notes that reads ${LONG} tokens first, with that of one with a local summary`,
    bound: { atMost: 1.5 },
    subject: createSide(LONG, 'notes'),
    baseline: createSide(LONG, 'local'),
  })),
]
