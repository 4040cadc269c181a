/** The tools TodoWrite, AskUser, Skill and ExitPlanMode. */
import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { type AgentTool, cutText, defineTool, ToolError } from './tool-definition.ts'
import type { SkillLoader, TodoItem, ToolEnvironment, UserAnswer, UserQuestion } from './tool-environment.ts'

export function createConversationTools(environment: ToolEnvironment): Readonly<Record<string, AgentTool>> {
  const { skills, endPlanMode } = environment
  return {
    TodoWrite: createTodoWriteTool(environment),
    AskUser: createAskUserTool(environment),
    ...(skills === undefined ? {} : { Skill: createSkillTool(skills) }),
    ...(endPlanMode === undefined ? {} : { ExitPlanMode: createExitPlanModeTool(endPlanMode) }),
  }
}

function createTodoWriteTool({ onTodos }: ToolEnvironment): AgentTool {
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

function createAskUserTool({ askUser }: ToolEnvironment): AgentTool {
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
      const given = await askUser(questions, signal)
      const content = questions
        .map(({ question }, index) => describeAnswer(question, given[index] ?? []))
        .join('\n')
      const answers = questions.flatMap(({ question, options }, index) => {
        const answer = given[index] ?? []
        if (answer.length === 0) return []
        return [{ question, options: options.map(({ label }) => label), text: answer.join(', ') }]
      })
      return { content, answers }
    },
  })
}

function describeAnswer(question: string, answer: UserAnswer): string {
  return `${question}\nAnswer: ${answer.length === 0 ? '(skipped)' : answer.join(', ')}`
}

/** Maximum characters for names in the definition of Skill. The model finds others by calling Skill without a name. */
const NAMES_CHARACTERS = 4_000

function createSkillTool({ names, list, load }: SkillLoader): AgentTool {
  const named = names.join(', ')
  const shown = named.length <= NAMES_CHARACTERS ? named : `${cutText(named, NAMES_CHARACTERS)} and more`
  return defineTool<{ skill?: string; args?: string }>({
    description: `Loads a skill: instructions for one kind of task. Load it before you begin if its description fits the task or the user names it, and follow its text; once loaded, it stays in use. Without a name, returns all skills with their descriptions. The skills: ${shown}.`,
    fields: {
      skill: { type: 'string', description: 'The name of the skill.' },
      args: { type: 'string', description: 'Arguments for the skill, if its text asks for some.' },
    },
    required: [],
    async run({ skill, args = '' }, { signal }) {
      if (skill !== undefined && skill.trim() !== '') return load(skill.trim(), args.trim(), signal)
      const skills = await list()
      return skills.map(({ name, description }) => `${name}: ${description}`).join('\n')
    },
  })
}

function createExitPlanModeTool(end: () => Promise<boolean>): AgentTool {
  return defineTool<{ plan: string }>({
    description:
      'Submits your plan to the user while plan mode is on. If the user approves it, plan mode ends and you can carry it out. Call it once you know what is to be changed and how; do not use it for questions or for work that changes nothing.',
    fields: { plan: { type: 'string', description: 'The whole plan, as Markdown.' } },
    required: ['plan'],
    async run({ plan }) {
      if (plan.trim() === '') throw new ToolError('The plan is empty.')
      if (!(await end())) throw new ToolError('Plan mode is not on. Go on with the work.')
      return 'The user has approved the plan, and plan mode is off. Carry it out now.'
    },
  })
}
