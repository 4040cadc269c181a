/** Scripts and fixtures that the tests with real clients share. */
import type { Script } from '@tidemark/simulator'

/** Thinks, calls two tools in parallel, and answers when both results have arrived. */
export const agent: Script = ({ messages }) => {
  const last = messages.at(-1)
  const answered = Array.isArray(last?.content) && last.content.some((block) => block.type === 'tool_result')
  if (answered) return { blocks: [{ type: 'text', text: 'Both are in – done ✓.' }] }
  return {
    blocks: [
      { type: 'thinking', thinking: 'Two files, so two calls.' },
      { type: 'text', text: 'Reading.' },
      { type: 'tool_use', name: 'read', input: { path: 'a.txt', lines: [1, 2] } },
      { type: 'tool_use', name: 'read', input: { path: 'b.txt' } },
    ],
  }
}

export const READ = {
  name: 'read',
  description: 'Reads a file',
  input_schema: { type: 'object' as const, properties: { path: { type: 'string' } } },
}

export const PROMPT = 'What is in a.txt and b.txt?'
