/** The two contests: a session that has lived so long goes on, and a whole conversation is handed over at once. */
import { ask, type Contender, type Conversation } from './contender.ts'
import { extendsPrefix, type Left, leftOf, prefixOf } from './outcome.ts'
import { type Step, type Story, tellStory } from './story.ts'
import { compareTimes, timed } from './timing.ts'

/** Turns over which rewrites are counted. */
export const TURNS = 50

export interface Row {
  readonly name: string
  readonly kind: Contender['kind']
  readonly call: string
  /** Milliseconds of one request, the median; NaN where it broke. */
  readonly ms: number
  /** To Tidemark's in the same rounds. */
  readonly ratio: number
  readonly left: Left | null
  /** Of the turns that followed; null where none did. */
  readonly after: Turns | null
  readonly error: string | null
}

export interface Turns {
  /** Requests that did not begin with all that the request before said. */
  readonly rewrites: number
  /** Requests that a provider would refuse. */
  readonly refused: number
  readonly worstMs: number
}

export async function livingContest(
  steps: number,
  ours: Contender,
  peers: readonly Contender[],
): Promise<readonly Row[]> {
  const story = tellStory(steps + TURNS)
  const baseline = await lifeOf(ours, story, steps)
  const rows: Row[] = []
  for (const peer of peers)
    rows.push(
      await rowOf(peer, async () => {
        const subject = await lifeOf(peer, story, steps)
        const { ms, ratio } = await against(subject, baseline)
        return { ms, ratio, ...(await goOn(subject, story.steps.slice(steps))) }
      }),
    )
  const own = await rowOf(ours, async () => ({
    ...(await against(baseline, await lifeOf(ours, story, steps))),
    ...(await goOn(baseline, story.steps.slice(steps))),
    ratio: 1,
  }))
  return [own, ...rows]
}

/** Each against the one of ours that does the same; ours are measured against themselves. */
export async function wholeContest(steps: number, pairs: readonly Pair[]): Promise<readonly Row[]> {
  const opened = openOnce(tellStory(steps))
  const rows: Row[] = []
  for (const { contender, against: other } of pairs)
    rows.push(
      await rowOf(contender, async () => {
        const subject = await opened(contender)
        const figures = await against(subject, await opened(other))
        const left = leftOf((await ask(subject)).messages())
        return { ...figures, ratio: contender === other ? 1 : figures.ratio, left, after: null }
      }),
    )
  return rows
}

/** Ours live through the whole story first: once is enough. */
function openOnce(story: Story): (contender: Contender) => Promise<Conversation> {
  const known = new Map<Contender, Promise<Conversation>>()
  return (contender) => {
    const conversation = known.get(contender) ?? contender.open(story)
    known.set(contender, conversation)
    return conversation
  }
}

export interface Pair {
  readonly contender: Contender
  readonly against: Contender
}

async function against(
  subject: Conversation,
  baseline: Conversation,
): Promise<{ readonly ms: number; readonly ratio: number }> {
  const { subjectMs, ratio } = await compareTimes(subject, baseline)
  return { ms: subjectMs, ratio }
}

/** What carries nothing from one request to the next need not be asked on the way. */
async function lifeOf(
  { carries, open }: Contender,
  { prompt, steps }: Story,
  count: number,
): Promise<Conversation> {
  if (!carries) return open({ prompt, steps: steps.slice(0, count) })
  let conversation = await open({ prompt, steps: [] })
  for (const step of steps.slice(0, count)) conversation = await (await ask(conversation)).after(step)
  return conversation
}

async function goOn(
  start: Conversation,
  steps: readonly Step[],
): Promise<{ readonly left: Left; readonly after: Turns }> {
  const first = await ask(start)
  const left = leftOf(first.messages())
  let [asked, sent] = [first, prefixOf(first.messages())]
  let [rewrites, refused, worstMs] = [0, 0, 0]
  for (const step of steps) {
    const { ms, value } = await timed(await (await asked.after(step)).ready())
    const messages = value.messages()
    const prefix = prefixOf(messages)
    if (!extendsPrefix(sent, prefix)) rewrites += 1
    if (leftOf(messages).refused !== null) refused += 1
    worstMs = Math.max(worstMs, ms)
    ;[asked, sent] = [value, prefix]
  }
  return { left, after: { rewrites, refused, worstMs } }
}

type Figures = Pick<Row, 'ms' | 'ratio' | 'left' | 'after'>

const BROKEN: Figures = { ms: Number.NaN, ratio: Number.NaN, left: null, after: null }

async function rowOf({ name, kind, call }: Contender, work: () => Promise<Figures>): Promise<Row> {
  try {
    return { name, kind, call, ...(await work()), error: null }
  } catch (error) {
    return { name, kind, call, ...BROKEN, error: error instanceof Error ? error.message : String(error) }
  }
}
