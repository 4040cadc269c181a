/**
 * The source of the reminder in front of the conversation: instructions of user and project, the state of the
 * repository and other texts of the host, each under a heading. The reminder does not change until a compaction writes
 * a new one; changes before that are appended. Its kind in records and policies is `ambient`.
 */
import { isObject } from '@tidemark/core/log/json'
import type { Attachment } from '@tidemark/core/log/record'
import type {
  ContextSource,
  ShownAttachmentIndex,
  SourceContext,
  SourceItem,
} from '@tidemark/core/sources/context-source'
import { defuseReminderTags } from '@tidemark/core/summary/accept-summary'
import { type TokenCounter, takeHeadWithinTokens } from '@tidemark/core/text/truncate-text'

export interface ReminderPart {
  /** Heading of the part, which also identifies it. */
  readonly heading: string
  readonly text: string
  /** Where the model can read the whole text if it was cut, such as a path. */
  readonly place?: string
}

interface ReminderParts {
  readonly parts: readonly ReminderPart[]
  /** Headings of parts that could not be read now. If the context shows them, they count as unchanged. */
  readonly unread: readonly string[]
}

/** Attachment type of the reminder and of its changes. */
export const REMINDER_TYPE = 'ambient_context'
const SOURCE_NAME = 'ambient'
const REMINDER_KEY = `${SOURCE_NAME}:`

interface ReminderSourceOptions {
  /** Returns the parts whose changes are appended, as they are now. Called before each request. */
  readonly read: (context: SourceContext) => Promise<ReminderParts>
  /** Returns the parts that appear only in the reminder. Called when the reminder is written. */
  readonly readSnapshots: (context: SourceContext) => Promise<readonly ReminderPart[]>
}

/** Creates the source. Writes the reminder if the context has none; otherwise appends the parts that changed. */
export function reminderSource({ read, readSnapshots }: ReminderSourceOptions): ContextSource {
  return {
    name: SOURCE_NAME,
    kind: 'ambient',
    tellsChanges: true,
    isWhole: true,
    limit: () => null,
    async *render(context) {
      const isShown = context.shown.byKey.has(REMINDER_KEY)
      const [found, snapshots] = await Promise.all([read(context), isShown ? [] : readSnapshots(context)])
      const parts = cleanParts(found.parts)
      yield* isShown
        ? renderChanges({ ...found, parts }, context)
        : renderReminder(parts, cleanParts(snapshots), context)
    },
  }
}

/** Returns the parts that are not empty. Tags that would end the reminder, even in a file name, are disarmed. */
function cleanParts(parts: readonly ReminderPart[]): readonly ReminderPart[] {
  const said = parts.filter(({ text }) => text.trim() !== '')
  return said.map((part) => ({ ...part, text: defuseReminderTags(part.text) }))
}

function* renderReminder(
  parts: readonly ReminderPart[],
  snapshots: readonly ReminderPart[],
  { budgets, measure }: SourceContext,
): Generator<SourceItem> {
  const said = [...parts, ...snapshots]
  if (said.length === 0) return
  const sections = Object.fromEntries(fitParts(said, budgets.ambient, measure))
  const headings = snapshots.map(({ heading }) => heading)
  const attachment = {
    type: REMINDER_TYPE,
    sections,
    ...(headings.length === 0 ? {} : { snapshots: headings }),
  }
  yield { id: '', attachment, source: 'host' }
}

/** Returns the text of each part as the context shows it, in the reminder or appended later, without snapshots. */
function readShownParts({ byKey }: ShownAttachmentIndex): ReadonlyMap<string, string> {
  const shown = new Map<string, string>()
  const own = [...byKey].filter(([key]) => key.startsWith(REMINDER_KEY))
  for (const [, attachments] of own.toSorted(([one], [other]) => one.length - other.length))
    for (const { attachment } of attachments) {
      const { sections, snapshots } = attachment
      for (const [heading, text] of Object.entries(isObject(sections) ? sections : {}))
        if (Array.isArray(snapshots) && snapshots.includes(heading)) continue
        else if (typeof text === 'string') shown.set(heading, text)
        else shown.delete(heading)
    }
  return shown
}

function* renderChanges({ parts, unread }: ReminderParts, context: SourceContext): Generator<SourceItem> {
  const shown = readShownParts(context.shown)
  const changed = parts.filter(({ heading, text }) => !isShowing(shown.get(heading), text))
  const fitted = new Map(fitParts(changed, context.budgets.ambient, context.measure))
  const present = new Set([...parts.map(({ heading }) => heading), ...unread])
  const gone = [...shown.keys()].filter((heading) => !present.has(heading))
  const news = [...fitted, ...gone.map((heading) => [heading, null] as const)]
  for (const [heading, text] of news) {
    const attachment: Attachment = { type: REMINDER_TYPE, sections: { [heading]: text }, update: true }
    yield { id: heading, attachment, source: 'host' }
  }
  // Parts that are listed as skipped still exist.
  const named = new Set(news.map(([heading]) => `${REMINDER_KEY}${heading}`))
  for (const key of context.shown.byKey.keys())
    if (key.startsWith(REMINDER_KEY) && !named.has(key))
      yield { id: key.slice(REMINDER_KEY.length), why: 'is unchanged' }
}

const CUT_NOTE = /\n\[cut: \d+ of (\d+) characters are shown[^\]]*\]$/

/** Returns true if the context shows this text, whole or cut. */
function isShowing(shown: string | undefined, text: string): boolean {
  if (shown === undefined || shown === text) return shown === text
  const cut = CUT_NOTE.exec(shown)
  return cut !== null && Number(cut[1]) === text.length && text.startsWith(shown.slice(0, cut.index))
}

// Fits the parts into the budget of the reminder: the longest are cut, so that a short rule is never lost to a long file.

/** Tokens reserved for the headings, and for the note on each part that is cut. */
const FRAME_TOKENS = 60
const NOTE_TOKENS = 60

function fitParts(
  parts: readonly ReminderPart[],
  budget: number,
  measure: TokenCounter,
): readonly (readonly [string, string])[] {
  const sizes = parts.map(({ heading, text }) => measure(`# ${heading}\n${text}\n\n`))
  const room = Math.max(0, budget - FRAME_TOKENS)
  const most = findLargestShare(sizes, room)
  return parts.map(({ heading, text, place }, index) => {
    if ((sizes[index] ?? 0) <= most) return [heading, text]
    const left = most - NOTE_TOKENS - measure(`# ${heading}\n\n\n`)
    const head = left <= 0 ? '' : takeHeadWithinTokens(text, left, measure)
    const where = place === undefined ? '' : `; read ${place} for the rest`
    return [heading, `${head}\n[cut: ${head.length} of ${text.length} characters are shown${where}]`]
  })
}

/** Returns the size to which all longer parts are cut so that all parts together fit into `room`. */
function findLargestShare(sizes: readonly number[], room: number): number {
  let left = room
  const sorted = sizes.toSorted((one, other) => one - other)
  for (const [index, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index))
    if (size > share) return share
    left -= size
  }
  return Number.POSITIVE_INFINITY
}
