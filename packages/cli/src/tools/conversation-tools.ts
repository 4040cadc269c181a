/** The tools TodoWrite and AskUser. */
import { formatCount } from '../render/format-numbers.ts'
import type { AgentEnvironment, TodoItem, UserAnswer, UserQuestion } from './agent-environment.ts'
import { type AgentTool, defineTool, ToolError } from './tool-definition.ts'

export function createConversationTools(environment: AgentEnvironment): Readonly<Record<string, AgentTool>> {
  return { TodoWrite: createTodoWriteTool(environment), AskUser: createAskUserTool(environment) }
}

function createTodoWriteTool({ onTodos }: AgentEnvironment): AgentTool {
  return defineTool<{ todos: readonly TodoItem[] }>({
    description:
      'Replaces your todo list. Use it for work of three or more steps: have one item in progress at a time, and mark each as completed as soon as it is done. Always give the whole list.',
    fields: {
      todos: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            content: { type: 'string', description: 'What is to be done, such as "Run the tests".' },
            status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
            activeForm: {
              type: 'string',
              description: 'The same as an ongoing action: "Running the tests".',
            },
          },
          required: ['content', 'status'],
          additionalProperties: false,
        },
      },
    },
    required: ['todos'],
    run({ todos }) {
      if (todos.some(({ content }) => content.trim() === '')) throw new ToolError('An item has no content.')
      onTodos?.(todos)
      const count = (status: TodoItem['status']): number =>
        todos.filter((todo) => todo.status === status).length
      return `The todo list has ${formatCount(todos.length, 'item')}: ${count('completed')} completed, ${count('in_progress')} in progress, ${count('pending')} pending.`
    },
  })
}

const MAX_QUESTIONS = 4

function createAskUserTool({ askUser }: AgentEnvironment): AgentTool {
  return defineTool<{ questions: readonly UserQuestion[] }>({
    description: `Asks the user up to ${MAX_QUESTIONS} questions with options to choose from; the user may also type another answer. Ask only what you cannot find out yourself and what changes the work.`,
    fields: {
      questions: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_QUESTIONS,
        items: {
          type: 'object',
          properties: {
            question: { type: 'string' },
            header: { type: 'string', description: 'A label of one or two words.' },
            options: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  label: { type: 'string' },
                  description: { type: 'string', description: 'What choosing it means.' },
                },
                required: ['label'],
                additionalProperties: false,
              },
            },
            multiSelect: { type: 'boolean', description: 'Whether several options can be chosen.' },
          },
          required: ['question', 'options'],
          additionalProperties: false,
        },
      },
    },
    required: ['questions'],
    async run({ questions }, { signal }) {
      if (questions.length === 0 || questions.length > MAX_QUESTIONS)
        throw new ToolError(`Ask one to ${MAX_QUESTIONS} questions.`)
      if (askUser === undefined)
        throw new ToolError(
          'Nobody can answer in this session. Go on with the assumption that fits best, and state it in your answer.',
        )
      const answers = await askUser(questions, signal)
      return questions.map(({ question }, index) => describeAnswer(question, answers[index] ?? [])).join('\n')
    },
  })
}

function describeAnswer(question: string, answer: UserAnswer): string {
  return `${question}\nAnswer: ${answer.length === 0 ? '(skipped)' : answer.join(', ')}`
}
