/** The slash command /model: switches to another model, given by name or chosen from a list. */

import { formatTokenLimit, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { toSafeLine } from '@tidemark/terminal/render/text'
import { lookUpModel, type ModelEntry, modelCatalogue } from 'tidemark/catalogue'
import { type ChatContext, chooseChatModel, type SlashCommand } from './chat-context.ts'

export const modelCommand: SlashCommand = {
  name: 'model',
  args: '[name]',
  description: 'go on with another model; the context is compacted first if it would not fit',
  async run(chat, given) {
    const name = given === '' ? await pickModel(chat) : given
    if (name === null) return
    if (name === chat.agent.session.model) return chat.show(`The model is ${toSafeLine(name)} already.`)
    if (!lookUpModel(modelCatalogue, name).found && !(await confirmUnknown(chat, name))) return
    const choice = chooseChatModel(chat.start, name)
    const outcome = await chat.work(`switching to ${name}`, () => chat.agent.session.switchModel(choice))
    if (outcome === null) return
    if (!outcome.ok) return chat.show(outcome.message, 'warning')
    const cold =
      chat.agent.session.messages().length === 0 ? '' : ' Its cache is cold: the next request costs more.'
    chat.show(`The context has ${formatTokens(outcome.tokens)} tokens for ${outcome.to}.${cold}`, 'good')
  },
  complete: async (chat, typed) => listModels(chat).flatMap(({ id }) => (id.startsWith(typed) ? [id] : [])),
}

/** Lists the models of providers for which the user has a key. Claude models are always listed. */
function listModels({ start }: ChatContext): readonly ModelEntry[] {
  const hasOpenai = (start.terminal.env.OPENAI_API_KEY ?? '') !== ''
  return modelCatalogue.models.filter(
    ({ vendor }) => vendor === 'anthropic' || (hasOpenai && vendor === 'openai'),
  )
}

/** Lets the user choose from the models of the catalogue. Returns null if none is chosen. */
async function pickModel(chat: ChatContext): Promise<string | null> {
  const models = listModels(chat)
  const { model } = chat.agent.session
  const { colors } = chat.theme
  const width = Math.max(...models.map(({ id }) => id.length)) + 2
  const current = models.findIndex(({ id }) => id === model)
  const result = await chat.screen.openPanel({
    title: `The model is ${toSafeLine(model)}. Go on with another one:`,
    rows: () =>
      models.map((entry) => ({
        text: `${entry.id.padEnd(width)}${colors.dim(describeModel(entry))}`,
        isChoice: true,
      })),
    actions: [{ key: 'enter', label: 'go on with it' }],
    firstChoice: Math.max(0, current),
  })
  return result === null ? null : (models[result.choice]?.id ?? null)
}

function describeModel(entry: ModelEntry): string {
  const window = entry.window === null ? '' : `window ${formatTokenLimit(entry.window)}`
  const { input, output } = entry.prices
  const prices =
    typeof input !== 'number' || typeof output !== 'number'
      ? []
      : [`$${input} in, $${output} out per million tokens`]
  return [...(window === '' ? [] : [window]), ...prices].join(' · ')
}

/** Refuses a name that is not in the catalogue. If the user has set a window, the server may have the model: asks the user. */
async function confirmUnknown(chat: ChatContext, name: string): Promise<boolean> {
  const shown = toSafeLine(name)
  const near = listModels(chat).filter(({ id }) => id.includes(name.toLowerCase()))
  const [nearest] = near
  const hint =
    nearest === undefined
      ? '/model lists those that Tidemark knows.'
      : `Did you mean ${nearest.id}? /model lists them.`
  const { window, simulation } = chat.start
  if (window === undefined || simulation !== undefined || !/^\S+$/.test(name)) {
    chat.show(`There is no model ${shown}. ${hint}`, 'warning')
    return false
  }
  const answer = await chat.screen.ask({
    title: `Tidemark does not know the model ${shown}. Use it all the same?`,
    body: () => [hint, `Its window is taken to have ${formatTokens(window)} tokens, as --window says.`],
    choices: [{ label: 'No' }, { label: 'Yes' }],
  })
  return answer?.chosen[0] === 1
}
