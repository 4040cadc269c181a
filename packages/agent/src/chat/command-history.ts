/**
 * The slash command /history: searches the whole log of the session, also what a compaction replaced and branches that were left, and opens
 * what it finds. It does not use the model's history tool, whose output has another form.
 */

import { formatCount, formatDuration } from '@tidemark/terminal/render/format-numbers'
import { toOneLinePreview, toSafeLine } from '@tidemark/terminal/render/text'
import type { Session } from 'tidemark'
import {
  isBranchSwitch,
  isKnownRecord,
  isPrompt,
  isTextBlock,
  isToolResult,
  isToolUse,
  type KnownRecord,
  readToolResultText,
  readUserTypedText,
  type SessionRecord,
  toBlocks,
} from 'tidemark/records'
import { toScreenText } from '../screen/screen-text.ts'
import { describeCallSubject } from '../screen/tool-views.ts'
import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'

export const historyCommand: SlashCommand = {
  name: 'history',
  args: 'TEXT',
  description: 'search the whole conversation, also what is no longer in the context',
  async run(chat, text) {
    const isIn = createMatcher(text)
    if (isIn === null) return chat.show('What to look for? /history TEXT', 'warning')
    const { folder } = chat.start
    const records = await chat.agent.session.records({ branches: 'all', isWhole: true })
    const found = listPassages(records, folder)
      .map((passage) => ({ passage, line: findLine(passage, text, isIn) }))
      .filter(({ line }) => line !== null)
      .toReversed()
    if (found.length === 0) return chat.show(`Nothing found for ${toSafeLine(text)}.`)
    await showFound(
      chat,
      `${formatCount(found.length, 'place')} with ${toSafeLine(text)}, the newest first`,
      found,
    )
  },
}

/** Returns a test for lines that contain all words and quoted phrases of a text, in any case; null if the text has none. */
function createMatcher(text: string): ((line: string) => boolean) | null {
  const terms = [...text.toLowerCase().matchAll(/"([^"]+)"|[^\s"]+/g)]
    .map(([word, phrase]) => (phrase ?? word).trim())
    .filter((term) => term !== '')
  if (terms.length === 0) return null
  return (line) => terms.every((term) => line.toLowerCase().includes(term))
}

interface FoundPassage {
  readonly passage: Passage
  readonly line: string | null
}

/** Lists what was found until the user closes the list. Enter opens a passage. */
async function showFound(chat: ChatContext, title: string, found: readonly FoundPassage[]): Promise<void> {
  const { dim, bold, yellow } = chat.theme.colors
  const now = Date.now()
  let firstChoice = 0
  for (;;) {
    const result = await chat.screen.openPanel({
      title,
      rows: () =>
        found.map(({ passage: { at, author, leftBy }, line }) => ({
          text: `${dim(formatAge(now - at).padEnd(14))} ${bold(author)} ${leftBy === null ? '' : yellow(`(${leftBy}) `)}${line ?? ''}`,
          isChoice: true,
        })),
      actions: [{ key: 'enter', label: 'open' }],
      firstChoice,
    })
    const chosen = result === null ? undefined : found[result.choice]
    if (result === null || chosen === undefined) return
    firstChoice = result.choice
    const { author, at, leftBy, text } = chosen.passage
    await showPage(chat, [author, formatAge(now - at), ...(leftBy === null ? [] : [leftBy])].join(', '), text)
  }
}

function formatAge(ms: number): string {
  return `${formatDuration(Math.max(0, ms))} ago`
}

/** One message, answer, tool call with its result, or summary of the conversation. */
interface Passage {
  /** The author, or the tool with its subject. */
  readonly author: string
  readonly text: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** The command that left the branch of the passage; null if the passage is part of the conversation. */
  readonly leftBy: string | null
}

/** Returns the passages of a session, from all branches, in the order of the log. */
function listPassages(records: Awaited<ReturnType<Session['records']>>, folder: string): readonly Passage[] {
  const passages: Passage[] = []
  /** Index of each call's passage, to which the result is added. */
  const calls = new Map<string, number>()
  for (const { record, leftBy } of records) {
    if (!isKnownRecord(record) || record.isSidechain === true) continue
    const facts = { at: Date.parse(record.timestamp), leftBy: leftBy === null ? null : nameMove(leftBy) }
    for (const { author, text, callId, resultOf } of listParts(record, folder)) {
      const place = resultOf === undefined ? undefined : calls.get(resultOf)
      const call = place === undefined ? undefined : passages[place]
      if (place !== undefined && call !== undefined)
        passages[place] = { ...call, text: `${call.text}\n\n${text}` }
      else passages.push({ author, text, ...facts })
      if (callId !== undefined) calls.set(callId, passages.length - 1)
    }
  }
  return passages
}

interface PassagePart {
  readonly author: string
  readonly text: string
  readonly callId?: string
  readonly resultOf?: string
}

/** Returns the parts of a record that users want to see. Texts that a program wrote for the model are left out. */
function listParts(record: KnownRecord, folder: string): readonly PassagePart[] {
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const isFromUser: boolean = record.type === 'user'
  const isSummary = record.isCompactSummary === true
  if (isPrompt(record)) return [{ author: 'You', text: toScreenText(readUserTypedText(record) ?? '').trim() }]
  return toBlocks(record.message.content).flatMap((block): readonly PassagePart[] => {
    if (isToolResult(block))
      return [
        {
          author: 'Result',
          text: toScreenText(readToolResultText(block.content)),
          resultOf: block.tool_use_id,
        },
      ]
    if (isFromUser)
      return isSummary && isTextBlock(block) ? [{ author: 'Summary', text: toScreenText(block.text) }] : []
    if (isTextBlock(block)) return [{ author: 'Answer', text: toScreenText(block.text) }]
    if (block.type === 'thinking' && typeof block.thinking === 'string')
      return [{ author: 'Thinking', text: toScreenText(block.thinking) }]
    if (!isToolUse(block)) return []
    const input = typeof block.input === 'object' && block.input !== null ? { ...block.input } : {}
    const subject = toOneLinePreview(describeCallSubject(block.name, input, folder), 32)
    return [{ author: `${toSafeLine(block.name)} ${subject}`, text: formatInput(input), callId: block.id }]
  })
}

function formatInput(input: Readonly<Record<string, unknown>>): string {
  return Object.entries(input)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .map(toScreenText)
    .join('\n')
}

/** Returns the first line that matches, beginning shortly before the match; null if there is none. */
function findLine({ text, author }: Passage, wanted: string, isIn: (line: string) => boolean): string | null {
  const lines = text.split('\n')
  const line = lines.find(isIn)
  if (line === undefined) return isIn(author) ? toOneLinePreview(lines[0] ?? '', LINE_CHARACTERS) : null
  const [first = ''] = wanted.replaceAll('"', ' ').trim().split(/\s+/)
  const start = line.toLowerCase().indexOf(first.toLowerCase()) - CHARACTERS_BEFORE
  const shown = start <= 0 ? line : `… ${line.slice(start).replace(/^\S*\s/, '')}`
  return toOneLinePreview(shown, LINE_CHARACTERS)
}

const CHARACTERS_BEFORE = 20
const LINE_CHARACTERS = 300

function nameMove(record: SessionRecord): string {
  if (!isBranchSwitch(record)) return 'on another branch'
  if (record.of !== undefined) return 'left by /undo'
  return record.subtype === 'conversation_cleared' ? 'left by /clear' : 'left by /rewind'
}
