/** A script that thinks before every answer, and a conversation with three thinking blocks. */
import type { Simulator, SimulatorOptions } from '@tidemark/simulator'
import { postMessage, result, simulate, TOOL, user } from './ask.ts'

export const MODEL = 'claude-fable-5-1'
export const CONTROLS = 'thinking-binding-controls-2026-08-01'

/** Thinks before every answer; calls a tool for each prompt that asks to look. */
export const THINKING_SIMULATOR: SimulatorOptions = {
  script: ({ messages }) => {
    const last = messages.at(-1)?.content
    const looks = Array.isArray(last) && last.some((block) => block.type === 'text' && block.text === 'look')
    return {
      blocks: [
        { type: 'thinking', thinking: `thought ${messages.length}` },
        looks
          ? { type: 'tool_use', name: 'look', input: { at: messages.length }, id: `toolu_${messages.length}` }
          : { type: 'text', text: `answer ${messages.length}` },
      ],
    }
  },
}

export interface Conversation {
  readonly simulator: Simulator
  /** u0, a1 (thinks, calls), u2 (result), a3 (thinks), u4, a5 (thinks), u6. */
  readonly messages: readonly object[]
  readonly base: object
}

export const REQUEST = { model: MODEL, system: 'You help.', tools: [TOOL], max_tokens: 200 }

export async function conversation(
  options: SimulatorOptions = THINKING_SIMULATOR,
  base: object = REQUEST,
): Promise<Conversation> {
  const simulator = simulate(options)
  const messages: object[] = [
    user('look', { type: 'image', source: { type: 'url', url: 'https://x.test/a.png?sig=1' } }),
  ]
  const turns = [user(result('toolu_1', 'found it')), user('good'), user('and now?')]
  for (const next of turns) {
    const { body, status } = await postMessage(simulator, { ...base, messages })
    if (status !== 200) throw new Error(body.error.message)
    messages.push({ role: 'assistant', content: body.content }, next)
  }
  return { simulator, messages, base }
}

export function replaceMessage(
  messages: readonly object[],
  at: number,
  message: object | null,
): readonly object[] {
  return messages.flatMap((each, index) => (index === at ? (message === null ? [] : [message]) : [each]))
}

export function readBlocks(message: object | undefined): readonly { readonly type: string }[] {
  return (message as { content: readonly { type: string }[] }).content
}

export function withoutThinking(messages: readonly object[], at: readonly number[]): readonly object[] {
  return messages.map((message, index) =>
    at.includes(index)
      ? { ...message, content: readBlocks(message).filter((block) => block.type !== 'thinking') }
      : message,
  )
}
