/** The tools the coder calls, as a request declares them. */
import type { JsonObject } from '../../api.ts'

const text = { type: 'string' }
const whole = { type: 'integer' }

export const CODER_TOOLS: readonly JsonObject[] = [
  tool('Read', 'Reads a file.', { file_path: text, offset: whole, limit: whole }, ['file_path']),
  tool('Grep', 'Searches files for a regular expression.', { pattern: text, path: text }, ['pattern']),
  tool('Edit', 'Replaces one string in a file.', { file_path: text, old_string: text, new_string: text }),
  tool('Bash', 'Runs a command.', { command: text, description: text }, ['command']),
  tool('TodoWrite', 'Keeps the list of what is to be done.', {
    todos: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          content: text,
          status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
          activeForm: text,
        },
        required: ['content', 'status'],
      },
    },
  }),
]

function tool(
  name: string,
  description: string,
  ...[properties, required]: readonly [JsonObject, (readonly string[])?]
): JsonObject {
  return {
    name,
    description,
    input_schema: { type: 'object', properties, required: required ?? Object.keys(properties) },
  }
}
