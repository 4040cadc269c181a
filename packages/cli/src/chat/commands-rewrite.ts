/** Slash commands that change the context: /compact with a preview, /undo, and /rewind to a message. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isPrompt, readUserTypedText } from '@tidemark/core'
import type { CompactionDraft, CompactOptions } from 'tidemark'
import { formatCount, formatDollars, formatTokens } from '../render/format-numbers.ts'
import { sanitizeLines, sanitizeText, toOneLinePreview } from '../render/text.ts'
import { type PanelResult, toPageRows } from '../screen/panel.ts'
import { toScreenText } from '../screen/transcript.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'
import { readSessionRecords } from './session-files.ts'

export const compactCommand: SlashCommand = {
  name: 'compact',
  args: '[instructions]',
  description: 'replace the conversation by a summary, after a preview',
  run: (chat, instructions) => compactWithPreview(chat, instructions === '' ? {} : { instructions }),
}

/** Plans and prepares a compaction, shows the draft, and commits it if the user agrees. */
async function compactWithPreview(chat: ChatContext, options: CompactOptions): Promise<void> {
  const { session } = chat.agent
  const prepared = await chat.work('writing the summary', async (signal) => {
    const plan = await session.planCompaction(options)
    return plan.ok ? await session.prepare(plan, { signal }) : plan
  })
  if (prepared === null) return
  if (!prepared.ok) return chat.show(`Not compacted: ${prepared.message}`, 'warning')
  const draft = await reviewDraft(chat, prepared)
  if (draft === null) return chat.show('Not compacted: the draft was discarded.')
  const outcome = await chat.work('compacting', (signal) => session.commit(draft, { signal }))
  if (outcome !== null && !outcome.ok) chat.show(`Not compacted: ${outcome.message}`, 'warning')
}

/** Shows a draft until the user commits or discards it. Returns the draft, edited or not; null if it is discarded. */
async function reviewDraft(chat: ChatContext, given: CompactionDraft): Promise<CompactionDraft | null> {
  let draft = given
  for (;;) {
    const result: PanelResult | null = await chat.screen.openPanel({
      title: 'Preview of the compaction: nothing has changed yet',
      rows: () => toPageRows(formatDraft(draft, chat)),
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

function formatDraft(draft: CompactionDraft, { theme: { colors } }: ChatContext): string {
  const { plan, after, receipt, summary, preparedText, usage } = draft
  const { files, userMessages, errors, identifiers } = receipt.lost
  const lost = [...files, ...userMessages, ...errors, ...identifiers].map(({ text }) => sanitizeText(text))
  const price = plan.price === null ? '' : describePrice(plan.price)
  const isEdited = summary.text !== preparedText
  return [
    `${formatTokens(plan.before.expected)} → ${colors.bold(`${formatTokens(after.expected)} tokens`)}${price}`,
    `${formatCount(receipt.summarised.length, 'record')} replaced by the summary, ${formatCount(receipt.kept.length, 'record')} kept word for word, ${formatCount(receipt.carried.length, 'attachment')} brought back`,
    ...(usage.calls === 0 ? ['The summary needed no model call.'] : []),
    ...plan.notes.map(sanitizeText),
    '',
    colors.bold(`No longer in view (${lost.length}); all of it stays in the log`),
    ...lost.slice(0, MAX_LOST).map((text) => `  ${text}`),
    ...(lost.length > MAX_LOST ? [`  and ${lost.length - MAX_LOST} more`] : []),
    '',
    colors.bold(`Summary${isEdited ? ' (edited)' : ''}`),
    sanitizeLines(summary.text),
  ].join('\n')
}

const MAX_LOST = 12

function describePrice({ cost, breakEvenCalls }: NonNullable<CompactionDraft['plan']['price']>): string {
  const pays =
    breakEvenCalls === null ? '' : `, pays for itself after ${formatCount(Math.ceil(breakEvenCalls), 'call')}`
  return `, costs ${formatDollars(cost)}${pays}`
}

/** Opens a text in the user's editor. Returns null if it was not changed or the editor has failed. */
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

export const undoCommand: SlashCommand = {
  name: 'undo',
  args: '',
  description: 'take back the newest compaction, clearing, /rewind or /clear',
  async run(chat) {
    const { session } = chat.agent
    const outcome = await chat.work('undoing', (signal) => session.undo(undefined, { signal }))
    if (outcome === null) return
    if (outcome.ok) {
      // Other undos are shown by an event.
      if (outcome.kind === 'rewind') chat.show('The conversation is as it was before that.')
      return
    }
    if (outcome.reason !== 'too-large') return chat.show(outcome.message, 'warning')
    const answer = await chat.screen.ask({
      title: 'The restored context would not leave room for another request. Undo anyway?',
      body: () => [sanitizeText(outcome.message)],
      choices: [{ label: 'No' }, { label: 'Yes' }],
    })
    if (answer?.chosen[0] !== 1) return
    const forced = await chat.work('undoing', (signal) => session.undo(undefined, { signal, force: true }))
    if (forced !== null && !forced.ok) chat.show(forced.message, 'warning')
  },
}

const PREVIEW_CHARACTERS = 300

export const rewindCommand: SlashCommand = {
  name: 'rewind',
  args: '',
  description: 'go back to before a message, or compact from or up to it',
  async run(chat) {
    const prompts = await listPrompts(chat)
    if (prompts.length === 0) return chat.show('There is no message to go back to.')
    const rows = prompts.map(({ text }) => ({
      text: toOneLinePreview(text, PREVIEW_CHARACTERS),
      isChoice: true,
    }))
    const result = await chat.screen.openPanel({
      title: 'Messages in the context, the newest first',
      rows: () => rows,
      actions: [
        { key: 'enter', label: 'go back to before it' },
        { key: 'f', label: 'summarize from it on' },
        { key: 'u', label: 'summarize up to it' },
      ],
    })
    const chosen = result === null ? undefined : prompts[result.choice]
    if (result === null || chosen === undefined) return
    if (result.key === 'enter') await rewindTo(chat, chosen)
    else await compactWithPreview(chat, { form: result.key === 'f' ? 'from' : 'up_to', pivot: chosen.uuid })
  },
}

interface ShownPrompt {
  readonly uuid: string
  readonly text: string
}

/** Returns the prompts of the user that are in the context now, the newest first. */
async function listPrompts({ agent, start }: ChatContext): Promise<readonly ShownPrompt[]> {
  const { session } = agent
  const shown = new Set(session.breakdown().messages.map(({ uuid }) => uuid))
  const records = await readSessionRecords(start.home, session.id)
  return records
    .filter(isPrompt)
    .filter(({ uuid }) => shown.has(uuid))
    .map((record) => ({ uuid: record.uuid, text: toScreenText(readUserTypedText(record) ?? '').trim() }))
    .toReversed()
}

async function rewindTo(chat: ChatContext, { uuid, text }: ShownPrompt): Promise<void> {
  const outcome = await chat.work('going back', (signal) => chat.agent.session.rewind(uuid, { signal }))
  if (outcome === null) return
  if (!outcome.ok) return chat.show(outcome.message, 'warning')
  // The message can be changed and sent again.
  chat.screen.input.write(text)
}
