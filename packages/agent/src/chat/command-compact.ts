/** The slash command /compact, with a preview, which /rewind uses as well. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatCount, formatDollars, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { removeControlCharacters, toSafeLine } from '@tidemark/terminal/render/text'
import type { CompactionDraft, CompactOptions } from 'tidemark'
import { describeLostError, shortenFact } from '../screen/compaction-text.ts'
import { type PanelChoice, toPageRows } from '../screen/panel.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'

export const compactCommand: SlashCommand = {
  name: 'compact',
  args: '[instructions]',
  description: 'replace the conversation by a summary, after a preview',
  run: (chat, instructions) => compactWithPreview(chat, instructions === '' ? {} : { instructions }),
}

/** Plans and prepares a compaction, shows the draft, and commits it if the user agrees. */
export async function compactWithPreview(chat: ChatContext, options: CompactOptions): Promise<void> {
  const { session } = chat.agent
  const before = session.money().spent.total ?? 0
  const prepared = await chat.work('writing the summary', async (signal) => {
    const plan = await session.planCompaction(options)
    return plan.ok ? await session.prepare(plan, { signal }) : plan
  })
  if (prepared === null) return
  const paid = (session.money().spent.total ?? 0) - before
  const cost = paid > 0 ? ` The draft has cost ${formatDollars(paid)}.` : ''
  if (!prepared.ok) return chat.show(`Not compacted: ${prepared.message}${cost}`, 'warning')
  const { instructions = null } = options
  const draft = await reviewDraft(chat, prepared, { paid, instructions })
  if (draft === null) return chat.show(`Not compacted: the draft was discarded.${cost}`)
  const outcome = await chat.work('compacting', (signal) => session.commit(draft, { signal }))
  if (outcome !== null && !outcome.ok) chat.show(`Not compacted: ${outcome.message}`, 'warning')
  else if (outcome !== null && draft.summary.text !== draft.preparedText)
    chat.show('The summary is the one that you have edited.')
}

interface DraftFacts {
  /** Dollars paid for writing the summary. */
  readonly paid: number
  readonly instructions: string | null
}

/** Shows a draft until the user commits or discards it. Returns the draft, edited or not; null if it is discarded. */
async function reviewDraft(
  chat: ChatContext,
  given: CompactionDraft,
  facts: DraftFacts,
): Promise<CompactionDraft | null> {
  let draft = given
  for (;;) {
    const result: PanelChoice | null = await chat.screen.openPanel({
      title: 'Preview of the compaction: the context is unchanged so far',
      // Markdown would number the sections anew, so the text is shown unformatted.
      rows: () =>
        toPageRows(
          `${formatDraft(draft, facts, chat)}\n${removeControlCharacters(dropHeading(draft.summary.text))}`,
        ),
      actions: [
        { key: 'enter', label: 'compact' },
        { key: 'e', label: 'edit the summary' },
      ],
    })
    if (result === null) return null
    if (result.key === 'enter') return draft
    const text = await editText(chat, draft.summary.text)
    if (text !== null) draft = { ...draft, summary: { ...draft.summary, text } }
  }
}

function formatDraft(draft: CompactionDraft, facts: DraftFacts, { theme: { colors } }: ChatContext): string {
  const { plan, after, receipt, summary, preparedText, usage } = draft
  const { files, userMessages, errors, identifiers } = receipt.lost
  const lost = [
    ...[...files, ...userMessages].map(({ text }) => shortenFact(text)),
    ...errors.map(describeLostError),
    ...identifiers.map(({ text }) => shortenFact(text)),
  ]
  const isEdited = summary.text !== preparedText
  const replaced = formatCount(receipt.summarised.length, 'message or result', 'messages and results')
  return [
    `${formatTokens(plan.before.expected)} → ${colors.bold(`${formatTokens(after.expected)} tokens`)}`,
    ...describePrice(draft, facts),
    `${replaced} replaced by the summary, ${receipt.kept.length} kept word for word, ${formatCount(receipt.carried.length, 'attachment')} brought back`,
    ...(usage.calls === 0 ? ['The summary needed no model call.'] : []),
    ...(facts.instructions === null ? [] : [`Your instructions: ${toSafeLine(facts.instructions)}`]),
    ...plan.notes.map(toSafeLine),
    '',
    colors.bold(`Facts that would no longer be mentioned: ${lost.length === 0 ? 'none' : lost.length}`),
    ...(lost.length === 0 ? [] : ['The log keeps them, and /history finds them.']),
    ...lost.slice(0, MAX_LOST).map((text) => `  ${text}`),
    ...(lost.length > MAX_LOST ? [`  and ${lost.length - MAX_LOST} more`] : []),
    '',
    colors.bold(`Summary${isEdited ? ' (edited)' : ''}`),
    '',
  ].join('\n')
}

const MAX_LOST = 12

/** Removes `Summary:` at the beginning, as many summaries have it: the page has this heading already. */
function dropHeading(text: string): string {
  return text.replace(/^\s*Summary:\s*/, '')
}

/** If a compaction needs more model calls than this to pay for itself, it is hardly worthwhile. */
const MANY_CALLS = 100

/** Describes what the draft has cost, and after how many calls the compaction pays for itself. */
function describePrice({ price }: CompactionDraft, { paid }: DraftFacts): readonly string[] {
  const draft = paid > 0 ? [`The draft has cost ${formatDollars(paid)}, which is paid in any case.`] : []
  if (price === null) return draft
  const { breakEvenCalls: calls, cost } = price
  if (calls === null) return [...draft, 'It does not pay for itself: the context hardly gets smaller.']
  if (calls === 0) return [...draft, 'It pays for itself at once: the prompt cache has expired.']
  const hardly = calls > MANY_CALLS ? ': hardly worth it in money' : ''
  const pays = `pays for itself after ${formatCount(calls, 'call')}${hardly}`
  return [...draft, `Writing the new context to the cache costs ${formatDollars(cost)}; it ${pays}.`]
}

/** Opens a text in the user's editor, in place of the screen. Returns null if the text is unchanged or the editor failed. */
async function editText(chat: ChatContext, text: string): Promise<string | null> {
  const { env } = chat.start.terminal
  const editor = env.VISUAL || env.EDITOR || 'vi'
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-summary-'))
  const file = join(folder, 'summary.md')
  try {
    await writeFile(file, text, { mode: 0o600 })
    const code = await chat.screen.suspend(() => runEditor(editor, file))
    const edited = await readFile(file, 'utf8')
    if (code === 0) return edited === text ? null : edited
    chat.show(`The editor ${editor} has failed; set EDITOR to another one.`, 'warning')
    return null
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function runEditor(editor: string, file: string): Promise<number> {
  return new Promise((resolve) => {
    // EDITOR may have arguments, such as "code --wait".
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' })
    child.on('error', () => resolve(1))
    child.on('exit', (code) => resolve(code ?? 1))
  })
}
