/**
 * Skills: files `SKILL.md` with instructions that the model loads when it needs them. Their names and descriptions are
 * listed once in a branch. After a compaction, only skills in use are attached again, with the text that the model has read.
 */
import type { ContextEntry } from '../context/context-entry.ts'
import { hasToolRunSucceeded, listToolRuns } from '../facts/tool-runs.ts'
import { readCommandMessage } from '../facts/user-input.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { listBranchRecords, type SessionLog } from '../log/session-log.ts'
import { defuseReminderTags } from '../summary/accept-summary.ts'
import { takeHeadWithinTokens } from '../text/truncate-text.ts'
import type { InvokedSkill } from './builtin-sources.ts'
import type { ContextSource, SourceContext, ValueOrPromise } from './context-source.ts'

// The listing.

const SKILL_LISTING_TYPE = 'skill_listing'
/** Characters of a description that the listing shows. */
const DESCRIPTION_CHARACTERS = 1_536

interface ListedSkill {
  readonly name: string
  readonly description: string
}

/**
 * Creates the source of the listing: each skill that the branch has not listed yet, with its description. After a
 * compaction nothing is listed again; the definition of the tool that loads skills still names them.
 */
export function skillListingSource(read: () => ValueOrPromise<readonly ListedSkill[]>): ContextSource {
  const findListed = createListedScanner()
  return {
    name: 'skill-listing',
    kind: 'skills',
    tellsChanges: true,
    isWhole: false,
    limit: () => null,
    async *render(context) {
      if (context.moment === 'compaction') return
      const listed = findListed(context.session)
      const fresh = (await read()).filter(({ name }) => !listed.has(name))
      if (fresh.length === 0) return
      const items = Object.fromEntries(fitDescriptions(fresh, context))
      yield { id: 'listing', attachment: { type: SKILL_LISTING_TYPE, items }, source: 'host', isDelta: true }
    },
  }
}

/** Fits the descriptions into the tokens of one skill. Those that no longer fit are left out; their names stay. */
function fitDescriptions(
  skills: readonly ListedSkill[],
  { budgets, measure }: SourceContext,
): readonly (readonly [string, string])[] {
  let left = budgets.skills.each - skills.reduce((sum, { name }) => sum + measure(`${name}: \n`), 0)
  return skills.map(({ name, description }) => {
    const text = takeHeadWithinTokens(
      defuseReminderTags(description),
      DESCRIPTION_CHARACTERS,
      (part) => part.length,
    )
    const tokens = measure(text)
    if (tokens > left) return [name, '(the description was left out for its length)'] as const
    left -= tokens
    return [name, text] as const
  })
}

/** Returns a function that finds the names that a branch has listed. Each record is looked at once. */
function createListedScanner(): (session: SessionLog) => ReadonlySet<string> {
  let scanned = AppendList.of<number>()
  let names = new Set<string>()
  return ({ branch, records }) => {
    const grew = branch.extends(scanned) && branch.length >= scanned.length
    if (!grew) names = new Set()
    for (const index of branch.toArray(grew ? scanned.length : 0)) {
      const record = records.at(index)
      if (record === undefined || !isKnownRecord(record) || record.type !== 'attachment') continue
      const { type, items } = record.attachment
      if (type === SKILL_LISTING_TYPE && isObject(items))
        for (const name of Object.keys(items)) names.add(name)
    }
    scanned = branch
    return names
  }
}

// Skills in use.

interface InvokedSkillsOptions {
  /** The name of the tool that loads skills; its input names the skill in `skill`. */
  readonly tool: string
  /** Returns the path of a skill's file; null if there is no such skill, as for other slash commands. */
  readonly findPath: (name: string) => string | null
}

/**
 * Returns the skills that the model has loaded or the user has invoked in the branch, the newest first and each once, with
 * the text that the model has read. Those whose text is among the kept messages are left out.
 */
export function listInvokedSkills(
  { session, kept }: SourceContext,
  { tool, findPath }: InvokedSkillsOptions,
): readonly InvokedSkill[] {
  const records = listBranchRecords(session)
  const shown = new Set([...kept].filter(isShownWhole).map(({ record }) => record.uuid))
  const loaded = listToolRuns(records)
    .filter((run) => run.name === tool && hasToolRunSucceeded(run))
    .map(({ input, result, resultUuid, resultIndex }) => ({
      name: isObject(input) && typeof input.skill === 'string' ? input.skill : '',
      text: result,
      uuid: resultUuid,
      index: resultIndex ?? 0,
    }))
  const newest = [...loaded, ...records.flatMap(readInvokedByUser)].sort(
    (one, other) => other.index - one.index,
  )
  const known = new Set<string>()
  return newest.flatMap(({ name, text, uuid }) => {
    const path = findPath(name)
    if (path === null || known.has(name)) return []
    known.add(name)
    return uuid !== null && shown.has(uuid) ? [] : [{ name, text, path }]
  })
}

function isShownWhole({ cleared }: ContextEntry): boolean {
  return cleared === undefined
}

function readInvokedByUser(
  record: KnownRecord,
  index: number,
): readonly {
  readonly name: string
  readonly text: string
  readonly uuid: string
  readonly index: number
}[] {
  const command = record.type === 'user' ? readCommandMessage(record.message.content) : null
  return command === null ? [] : [{ name: command.name, text: command.contents, uuid: record.uuid, index }]
}
