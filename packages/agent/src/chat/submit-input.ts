/**
 * Handles a text that the user sends. A screen command runs; `!` runs a shell command; a prompt starts a turn, or waits in the queue during
 * one. An unknown command is put back into the input.
 */
import { existsSync } from 'node:fs'
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import type { Agent } from '../agent/agent-options.ts'
import { pickSimilarNames } from '../tools/file-content.ts'
import type { ChatContext } from './chat-context.ts'
import { type ChatState, startRunningWork } from './chat-state.ts'
import { findScreenCommand, listScreenCommands } from './slash-commands.ts'

/**
 * Handles a text that the user has sent, or puts it into the queue. `isPlain`: the user typed a space before it, so that it is
 * sent as a prompt even if it looks like an unknown command.
 */
export function submitInput(chat: ChatContext, state: ChatState, typed: string, isPlain = false): void {
  const text = typed.trim()
  if (text === '') return
  state.hint = ''
  const command = text === '?' ? findScreenCommand('/help') : findScreenCommand(text)
  const { queue } = state
  // Prompts that an earlier run left in the queue were shown in the input until now.
  queue.save()
  // Text typed before the session is open waits in the queue.
  if (state.agent === null) queue.add(text)
  else if (command !== null) void runCommand(chat, state, text, command)
  else if (state.running !== null) queue.add(text)
  // Only a single line is a shell command: of several queued prompts that came back, not all may run because one begins with `!`.
  else if (/^!.+$/.test(text)) void runShell(chat, state, text.slice(1).trim())
  else void runPrompt(chat, state, { text, isPlain })
  chat.screen.update()
}

/** Sends the next prompt of the queue, if there is one. After an interruption, all queued prompts return to the input instead. */
export function sendNextQueuedPrompt(chat: ChatContext, state: ChatState, isInterrupted: boolean): void {
  // When the program ends, the queue stays in its file for the next run.
  if (state.isClosing) return
  if (isInterrupted) returnToInput(chat, state.queue.takeAll())
  const next = state.agent === null ? null : state.queue.takeFirst()
  if (next !== null) submitInput(chat, state, next)
}

/** Opens the queue of a session, and puts prompts that an earlier run of the program left in it into the input. */
export function openPromptQueue(chat: ChatContext, state: ChatState, path: string): void {
  const left = state.queue.open(path)
  if (left.length === 0) return
  returnToInput(chat, left)
  const what = formatCount(left.length, 'message was', 'messages were')
  chat.show(`${what} waiting when the session ended: see the input.`, 'warning')
}

/** Moves the newest queued prompt to the input, to be changed. Returns false if the queue is empty. */
export function moveNewestQueuedToInput(chat: ChatContext, state: ChatState): boolean {
  const newest = state.queue.takeNewest()
  if (newest === null) return false
  returnToInput(chat, [newest])
  chat.screen.update()
  return true
}

function returnToInput({ screen: { input } }: ChatContext, texts: readonly string[]): void {
  if (texts.length > 0) input.write([...texts, input.read()].filter((text) => text !== '').join('\n\n'))
}

/** Runs a turn, then sends the next queued prompt. Without a prompt, continues an interrupted turn. Failures are shown. */
export async function runPrompt(
  chat: ChatContext,
  state: ChatState,
  prompt: { readonly text: string; readonly isPlain: boolean } | null,
): Promise<void> {
  const { signal } = startRunningWork(state, 'starting', true).stop
  try {
    const unknown =
      prompt === null || prompt.isPlain ? null : await describeUnknownCommand(prompt.text, chat.agent)
    if (unknown === null) await runTurn(chat, state, prompt?.text ?? null, signal)
    else {
      chat.show(unknown, 'warning')
      returnToInput(chat, [prompt?.text ?? ''])
    }
  } catch (error) {
    chat.show(error instanceof Error ? error.message : String(error), 'error')
  } finally {
    endRunning(chat, state)
  }
  sendNextQueuedPrompt(chat, state, signal.aborted)
}

function endRunning({ screen }: ChatContext, state: ChatState): void {
  state.running = null
  state.isMeterOld = true
  screen.update()
}

async function runTurn(
  chat: ChatContext,
  state: ChatState,
  prompt: string | null,
  signal: AbortSignal,
): Promise<void> {
  const { agent, start } = chat
  const expanded = prompt === null ? null : await agent.expandPrompt(prompt, signal)
  for (const notice of expanded?.notices ?? []) chat.show(notice, 'warning')
  const limit = start.maxTurns === undefined ? {} : { maxCalls: start.maxTurns }
  const shells = prompt === null ? [] : state.shellRuns.splice(0)
  const promptsBefore = countPrompts(chat)
  const run = agent.run(expanded === null ? null : addShellRuns(expanded.prompt, shells), {
    signal,
    ...limit,
    ...(expanded?.typed === undefined ? {} : { typed: expanded.typed }),
  })
  // The screen gets events from `onEvent`. The events of the run must be read, too, because unread events stay in memory.
  for await (const _ of run);
  const outcome = await run.outcome
  if (outcome.ok) return
  const withdrawn = 'withdrawn' in outcome ? (outcome.withdrawn ?? []) : []
  // A prompt that did not enter the conversation, because it was too long or was never appended, returns to the input.
  if (prompt === null) returnToInput(chat, withdrawn.map(readPromptText))
  else if (withdrawn.length > 0 || countPrompts(chat) === promptsBefore) {
    returnToInput(chat, [...withdrawn.slice(0, -1).map(readPromptText), prompt])
    state.shellRuns.unshift(...shells)
  }
  if (outcome.reason === 'aborted') chat.show('Interrupted. Type what to do instead.', 'warning')
  else if (withdrawn.length > 0) chat.show(`${outcome.message} The input has it again.`, 'error')
  else chat.show(`${outcome.message} /retry sends it again.`, 'error')
}

/** Returns the part of a prompt that the user typed, without attached files and command output. */
function readPromptText(content: NonNullable<Prompt>): string {
  const [first] = typeof content === 'string' ? [{ text: content }] : content
  return first !== undefined && 'text' in first && typeof first.text === 'string' ? first.text : ''
}

function countPrompts({ transcript }: ChatContext): number {
  return transcript.items.filter(({ kind }) => kind === 'prompt').length
}

/** Returns a message if a text calls an unknown command, with similar names; null if it calls none. */
async function describeUnknownCommand(prompt: string, agent: Agent): Promise<string | null> {
  const name = /^\/([a-z][\w:-]*)(?=\s|$)/i.exec(prompt)?.[1]
  // A prompt may begin with a path, as in "/tmp is full".
  if (name === undefined || existsSync(`/${name}`)) return null
  const files = (await agent.listPromptFiles()).filter(({ isForUser }) => isForUser)
  if (files.some((file) => file.name === name || file.name.endsWith(`:${name}`))) return null
  const names = [...listScreenCommands(), ...files].map((command) => command.name)
  const near = pickSimilarNames(name, names).map((each) => `/${each}`)
  const hint = near.length === 0 ? '/help lists them.' : `Did you mean ${near.join(' or ')}?`
  return `There is no command /${name}; nothing was sent. ${hint} With a space before it, it is sent as a prompt.`
}

// Shell commands of the user. The model sees a command and its output with the next prompt.

async function runShell(chat: ChatContext, state: ChatState, command: string): Promise<void> {
  const { signal } = startRunningWork(state, `running ${command.split('\n')[0] ?? ''}`).stop
  try {
    const { output, isFailed } = await chat.agent.runShell(command, signal)
    chat.transcript.addCall({ name: '!', input: { command }, result: output, isFailed })
    state.shellRuns.push({ command, output })
  } catch (error) {
    chat.show(error instanceof Error ? error.message : String(error), 'error')
  } finally {
    endRunning(chat, state)
  }
  sendNextQueuedPrompt(chat, state, signal.aborted)
}

type Prompt = Parameters<Agent['run']>[0]

/** Adds the shell commands that the user has run to the end of a prompt. Their output cannot close the surrounding element. */
function addShellRuns(prompt: NonNullable<Prompt>, runs: ChatState['shellRuns']): Prompt {
  if (runs.length === 0) return prompt
  const own = typeof prompt === 'string' ? [{ type: 'text', text: prompt }] : prompt
  const escapeTags = (text: string): string => text.replaceAll(/<(?=\/?(?:bash-|system-reminder))/gi, '&lt;')
  const blocks = runs.map(({ command, output }) => ({
    type: 'text',
    text: `<bash-input>${escapeTags(command)}</bash-input>\n<bash-stdout>${escapeTags(output)}</bash-stdout>`,
  }))
  return [...own, ...blocks]
}

async function runCommand(
  chat: ChatContext,
  state: ChatState,
  text: string,
  command: NonNullable<ReturnType<typeof findScreenCommand>>,
): Promise<void> {
  try {
    await command.run(chat)
  } catch (error) {
    chat.show(`${text}: ${error instanceof Error ? error.message : String(error)}`, 'error')
  }
  // Prompts typed while the slash command changed the session have waited for its end.
  if (state.running === null) sendNextQueuedPrompt(chat, state, false)
}
