/** Slash commands that go back and forth in the conversation: /undo, /redo, and /rewind to a message. */
import { wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { formatCount, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { toOneLinePreview, toSafeLine } from '@tidemark/terminal/render/text'
import {
  type BranchPrompt,
  findRedoStep,
  findUndoStep,
  listBranchPrompts,
  listFilesChangedSince,
  type UndoStep,
} from './branch-steps.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'
import { compactWithPreview } from './command-compact.ts'

export const undoCommand: SlashCommand = {
  name: 'undo',
  args: '',
  description: 'take back the newest compaction, clearing, /rewind or /clear',
  async run(chat) {
    const step = findUndoStep(chat.agent.session)
    if (step === null)
      return chat.show('There is nothing to undo: no compaction, clearing, /rewind or /clear.')
    await takeStep(chat, step, 'Undo')
  },
}

export const redoCommand: SlashCommand = {
  name: 'redo',
  args: '',
  description: 'take back the newest /undo',
  async run(chat) {
    const step = findRedoStep(chat.agent.session)
    if (step === null) return chat.show('There is no /undo to take back.')
    await takeStep(chat, step, 'Redo')
  },
}

/**
 * Undoes or redoes a step. Asks first if messages would leave the context, or if the next message would compact what comes back.
 */
async function takeStep(chat: ChatContext, step: UndoStep, verb: 'Undo' | 'Redo'): Promise<void> {
  const { session } = chat.agent
  if (chat.isBusy)
    return chat.show('A turn is running: interrupt it with escape, or wait for its end.', 'warning')
  const reasons = listReasonsToAsk(chat, step, verb)
  const isForced = reasons.length > 0
  if (isForced && !(await confirm(chat, `${verb} ${step.name}?`, reasons))) return
  const take = (force: boolean) =>
    chat.work(verb === 'Undo' ? 'undoing' : 'redoing', (signal) => session.undo(step.id, { signal, force }))
  let outcome = await take(isForced)
  if (outcome?.ok === false && outcome.reason === 'too-large') {
    const tooLarge =
      'What comes back leaves no room for another request: your next message compacts it again.'
    if (!(await confirm(chat, `${verb} ${step.name}?`, [tooLarge]))) return
    outcome = await take(true)
  }
  if (outcome === null) return
  if (!outcome.ok) return chat.show(outcome.message, 'warning')
  await dimLeftItems(chat)
  // For a compaction or clearing, an event shows the undo.
  if (outcome.kind === 'rewind') chat.show(describeTaken(step, verb))
  if (!isForced && compactsNext(chat))
    chat.show(describeSize(chat, chat.agent.session.contextRemaining().tokens, 'has'), 'warning')
}

/** Undoes a compaction or clearing that the user has chosen and confirmed on the page of this chat. */
export async function undoFromPage(
  chat: ChatContext,
  target: string,
): Promise<{ readonly ok: boolean; readonly message: string }> {
  if (chat.isBusy)
    return { ok: false, message: 'A turn is running in the chat: interrupt it there, or wait for its end.' }
  const outcome = await chat.work('undoing', (signal) => chat.agent.session.undo(target, { signal }))
  if (outcome === null) return { ok: false, message: 'It was not undone: the chat shows why.' }
  if (!outcome.ok) return { ok: false, message: outcome.message }
  await dimLeftItems(chat)
  return { ok: true, message: 'It is undone.' }
}

function describeTaken({ name, leaving }: UndoStep, verb: 'Undo' | 'Redo'): string {
  const what = verb === 'Undo' ? `Undone: ${name}.` : `Redone: ${name}.`
  const back = verb === 'Undo' ? '/redo' : '/undo'
  const left =
    leaving === 0
      ? ''
      : ` ${formatCount(leaving, 'newer message')} left the context; the log keeps all of it.`
  return `${what}${left} ${back} takes this back.`
}

function listReasonsToAsk(
  chat: ChatContext,
  { leaving, tokens: size, hasProviderClearing }: UndoStep,
  verb: 'Undo' | 'Redo',
): readonly string[] {
  const { lines } = chat.agent.session.contextRemaining()
  const back = verb === 'Undo' ? '/redo' : '/undo'
  return [
    ...(leaving === 0
      ? []
      : [
          `${formatCount(leaving, 'newer message leaves', 'newer messages leave')} the context, with what followed. The log keeps all of it; ${back} brings it back.`,
        ]),
    ...(size !== null && lines !== null && size >= lines.limit
      ? [describeSize(chat, size, 'will have')]
      : []),
    ...(hasProviderClearing
      ? ['The newest clearing was made by the provider and cannot be undone; this is what came before it.']
      : []),
  ]
}

/** Returns the warning that the next message compacts the context again, because it has too many tokens. */
function describeSize(chat: ChatContext, tokens: number, verb: 'has' | 'will have'): string {
  const limit = chat.agent.session.contextRemaining().lines?.limit ?? 0
  return `The context ${verb} about ${formatTokens(tokens)} tokens and is compacted from ${formatTokens(limit)} on: your next message compacts it again, unless you go further back with /rewind or change to a model with a larger window.`
}

function compactsNext(chat: ChatContext): boolean {
  const { high, lines } = chat.agent.session.contextRemaining()
  return lines !== null && high >= lines.limit
}

async function confirm(chat: ChatContext, title: string, reasons: readonly string[]): Promise<boolean> {
  const answer = await chat.screen.ask({
    title: toSafeLine(title),
    body: (width) => reasons.flatMap((reason) => wrapTextWithAnsi(toSafeLine(reason), width)),
    choices: [{ label: 'Yes' }, { label: 'No, leave it as it is' }],
  })
  return answer?.chosen[0] === 0
}

/** Dims messages on the screen that are no longer part of the conversation. */
export async function dimLeftItems(chat: ChatContext): Promise<void> {
  const prompts = await listBranchPrompts(chat.agent.session)
  chat.transcript.markLeft(new Set(prompts.map(({ uuid }) => uuid)))
  chat.screen.update()
}

const PREVIEW_CHARACTERS = 300

export const rewindCommand: SlashCommand = {
  name: 'rewind',
  args: '',
  description: 'go back to before a message, or compact from or up to it',
  async run(chat) {
    const { session } = chat.agent
    const prompts = (await listBranchPrompts(session)).toReversed()
    if (prompts.length === 0) return chat.show('There is no message to go back to.')
    const { colors } = chat.theme
    const result = await chat.screen.openPanel({
      title: 'Go back to before a message, the newest first. Files are not changed back.',
      rows: () => prompts.map((prompt) => ({ text: describePrompt(prompt, colors.dim), isChoice: true })),
      actions: [
        { key: 'enter', label: 'go back to before it' },
        { key: 'f', label: 'summarize from it on' },
        { key: 'u', label: 'summarize up to it' },
      ],
    })
    const chosen = result === null ? undefined : prompts[result.choice]
    if (result === null || chosen === undefined) return
    if (result.key === 'enter')
      return await rewindTo(chat, chosen, await listFilesChangedSince(session, chosen.uuid))
    if (chosen.isCompacted)
      return chat.show(
        'It was compacted already: enter goes back to before it, /undo takes the compaction back.',
      )
    await compactWithPreview(chat, { form: result.key === 'f' ? 'from' : 'up_to', pivot: chosen.uuid })
  },
}

function describePrompt({ text, isCompacted }: BranchPrompt, dim: (text: string) => string): string {
  const preview = toOneLinePreview(text, PREVIEW_CHARACTERS)
  return isCompacted ? `${preview} ${dim('(before the compaction)')}` : preview
}

async function rewindTo(
  chat: ChatContext,
  { uuid, text }: BranchPrompt,
  changed: readonly string[],
): Promise<void> {
  const outcome = await chat.work('going back', (signal) => chat.agent.session.rewind(uuid, { signal }))
  if (outcome === null) return
  if (!outcome.ok) return chat.show(outcome.message, 'warning')
  await dimLeftItems(chat)
  const files =
    changed.length === 0
      ? ''
      : ` Files are not changed back: ${changed.slice(0, MAX_FILES).map(toSafeLine).join(', ')}${changed.length > MAX_FILES ? ` and ${changed.length - MAX_FILES} more` : ''}.`
  chat.show(
    `Went back to before “${toOneLinePreview(text, 60)}”. What followed stays in the log: /undo returns to it.${files}`,
  )
  // The message is put into the input, to be changed and sent again.
  chat.screen.input.write(text)
}

const MAX_FILES = 5
