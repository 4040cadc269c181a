/** Slash commands that switch to another session or conversation: /resume, /fork, /clear, /retry, /exit. */

import { formatDuration } from '@tidemark/terminal/render/format-numbers'
import { cutTextEnd, toOneLinePreview } from '@tidemark/terminal/render/text'
import { createSessionId, listFolderSessions } from '../agent/agent-sessions.ts'
import { NEW_CONVERSATION_TEXT } from '../screen/event-lines.ts'
import { isTurnInterrupted } from './branch-steps.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'
import { dimLeftItems } from './commands-branch.ts'
import { inspectSession, readSessionRecords } from './session-files.ts'

const MAX_LISTED = 30
const AGE_CELLS = 14

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
  const drawRows = (width: number) =>
    sessions.map(({ id, at }, index) => {
      const age = `${formatDuration(Date.now() - at)} ago`.padEnd(AGE_CELLS)
      const room = Math.max(10, width - AGE_CELLS - id.length - 4)
      const prompt = cutTextEnd(toOneLinePreview(reports[index]?.firstPrompt ?? '(no prompt)', room), room)
      return { text: `${colors.dim(age)}${prompt} ${colors.dim(id)}`, isChoice: true }
    })
  const result = await chat.screen.openPanel({
    title: 'Sessions of this folder, the newest first',
    rows: drawRows,
    actions: [{ key: 'enter', label: 'go on with it' }],
  })
  return result === null ? null : (sessions[result.choice]?.id ?? null)
}

/** Closes the session and opens another one, shown below it. If that fails, the old session is opened again. */
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
      // Reopened below, with the tools and permissions of an agent.
      await copy.close()
      return true
    })
    if (copied !== true) return
    chat.transcript.clear()
    await switchTo(chat, id)
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
    await dimLeftItems(chat)
    chat.show(NEW_CONVERSATION_TEXT)
  },
}

export const retryCommand: SlashCommand = {
  name: 'retry',
  args: '',
  description: 'go on with a turn that was interrupted or has failed',
  async run(chat) {
    if (chat.isBusy) return chat.show('A turn is running.', 'warning')
    const records = await readSessionRecords(chat.start.home, chat.agent.session.id)
    if (!isTurnInterrupted(records))
      return chat.show('There is nothing to continue: the last answer is complete.')
    chat.send(null)
  },
}

export const exitCommand: SlashCommand = {
  name: 'exit',
  args: '',
  description: 'close the session and leave',
  run: async (chat) => chat.exit(),
}
