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

/** A side of the contest: each call compacts another copy of the session, and resolves to its longest hold. */
function createSide(tokens: number, summarizer: BenchSummarizer) {
  let session: Session | null = null
  return {
    async before(): Promise<void> {
      await session?.close()
      session = await openCodingSession(tokens, { summarizer })
    },
    async call(): Promise<number> {
      const own = session
      if (own === null) throw new Error('expected a session')
      return (await measureEventLoopHold(() => compactInSteps(own))).longestMs
    },
  }
}

function createCase(summarizer: BenchSummarizer): BenchCase {
  return {
    name: `compaction-hold-${summarizer}`,
    compares: `longest hold of the event loop by plan, prepare and commit at ${LONG} tokens with that at ${SHORT}`,
    bound: { atMost: 2 },
    rounds: 7,
    prepare() {
      const [long, short] = [createSide(LONG, summarizer), createSide(SHORT, summarizer)]
      return {
        subject: long.call,
        baseline: short.call,
        before: { subject: long.before, baseline: short.before },
        calls: { subject: 1, baseline: 1 },
        isSelfTimed: true,
      }
    },
  }
}

export const benchCases: readonly BenchCase[] = [createCase('local'), createCase('model')]
