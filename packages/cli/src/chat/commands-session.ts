/** Slash commands that go on with another session or another model: /resume, /fork, /clear, /model, /retry, /exit. */
import { modelCatalogue } from 'tidemark/catalogue'
import { createSessionId, listFolderSessions } from '../agent/agent-sessions.ts'
import { formatDuration, formatTokens } from '../render/format-numbers.ts'
import { toOneLinePreview } from '../render/text.ts'
import { type ChatContext, chooseChatModel, type SlashCommand } from './chat-context.ts'
import { inspectSession } from './session-files.ts'

const MAX_LISTED = 30

export const resumeCommand: SlashCommand = {
  name: 'resume',
  args: '[id]',
  description: 'go on with another session of this folder',
  async run(chat, id) {
    const { home, folder } = chat.start
    const others = (await listFolderSessions(home, folder)).filter(
      (session) => session.id !== chat.agent.session.id,
    )
    const chosen = id === '' ? await pickSession(chat, others.slice(0, MAX_LISTED)) : id
    if (chosen === null) return
    if (!others.some((session) => session.id === chosen))
      return chat.show(`There is no other session ${chosen} of this folder.`, 'warning')
    await switchTo(chat, chosen)
  },
  async complete(chat, typed) {
    const sessions = await listFolderSessions(chat.start.home, chat.start.folder)
    return sessions.map(({ id }) => id).filter((id) => id.startsWith(typed))
  },
}

async function pickSession(
  chat: ChatContext,
  sessions: readonly { readonly id: string; readonly at: number }[],
): Promise<string | null> {
  if (sessions.length === 0) {
    chat.show('There is no other session of this folder.')
    return null
  }
  const { colors } = chat.theme
  const reports = await Promise.all(sessions.map(({ id }) => inspectSession(chat.start.home, id)))
  const rows = sessions.map(({ id, at }, index) => {
    const age = `${formatDuration(Date.now() - at)} ago`.padEnd(16)
    const prompt = toOneLinePreview(reports[index]?.firstPrompt ?? '(no prompt)', 120)
    return { text: `${colors.dim(age)} ${prompt} ${colors.dim(id)}`, isChoice: true }
  })
  const result = await chat.screen.openPanel({
    title: 'Sessions of this folder, the newest first',
    rows: () => rows,
    actions: [{ key: 'enter', label: 'go on with it' }],
  })
  return result === null ? null : (sessions[result.choice]?.id ?? null)
}

/** Leaves the session and opens another one below it on the screen. If that fails, the old one is opened again. */
async function switchTo(chat: ChatContext, id: string): Promise<void> {
  const { id: before } = chat.agent.session
  const open = (other: string) => async (): Promise<true> => {
    await chat.openSession(other)
    return true
  }
  if (chat.isBusy || (await chat.work(`opening ${id}`, open(id))) === true) return
  await chat.work(`opening ${before}`, open(before))
}

export const forkCommand: SlashCommand = {
  name: 'fork',
  args: '',
  description: 'copy the conversation to a new session and go on there; this one stays as it is',
  async run(chat) {
    const { id: from } = chat.agent.session
    const id = createSessionId()
    const copied = await chat.work('copying the conversation', async () => {
      const copy = await chat.agent.session.fork(id)
      // The copy is opened again with the tools and permissions of an agent.
      await copy.close()
      return true
    })
    if (copied !== true) return
    chat.transcript.clear()
    await switchTo(chat, id)
    chat.screen.redraw()
    chat.show(`This is a copy of ${from}, which stays as it is: /resume ${from}`)
  },
}

export const clearCommand: SlashCommand = {
  name: 'clear',
  args: '',
  description: 'begin a new conversation in this session; /undo returns to the old one',
  async run(chat) {
    const outcome = await chat.work('clearing', (signal) => chat.agent.session.clear({ signal }))
    if (outcome === null) return
    if (!outcome.ok) return chat.show(outcome.message, 'warning')
    chat.show('A new conversation begins. /undo returns to the old one.')
  },
}

export const modelCommand: SlashCommand = {
  name: 'model',
  args: '[name]',
  description: 'go on with another model; the context is compacted first if it would not fit',
  async run(chat, name) {
    const { start, agent } = chat
    if (!/^\S+$/.test(name)) return chat.show(`The model is ${agent.session.model}. /model NAME switches.`)
    const choice = chooseChatModel(start, name)
    const outcome = await chat.work(`switching to ${name}`, () => agent.session.switchModel(choice))
    if (outcome === null) return
    if (!outcome.ok) return chat.show(outcome.message, 'warning')
    chat.show(`The context has ${formatTokens(outcome.tokens)} tokens for ${outcome.to}.`, 'good')
  },
  complete: async (_, typed) =>
    modelCatalogue.models
      .filter(({ vendor, id }) => vendor === 'anthropic' && id.startsWith(typed))
      .map(({ id }) => id),
}

export const retryCommand: SlashCommand = {
  name: 'retry',
  args: '',
  description: 'go on with a turn that was interrupted or has failed',
  async run(chat) {
    if (chat.isBusy) return chat.show('A turn is running.', 'warning')
    const last = chat.agent.session.messages().at(-1)
    if (last?.role !== 'user') return chat.show('There is nothing to continue: the last answer is complete.')
    chat.send(null)
  },
}

export const exitCommand: SlashCommand = {
  name: 'exit',
  args: '',
  description: 'close the session and leave',
  run: async (chat) => chat.exit(),
}
