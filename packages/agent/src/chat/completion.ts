/** Completes what is typed: slash commands with their arguments, and paths after an at sign. */
import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  fuzzyFilter,
} from '@earendil-works/pi-tui'
import { toSafeLine } from '@tidemark/terminal/render/text'
import { runSearchInThread } from '../tools/search-thread.ts'
import type { WalkedFile } from '../tools/walk-files.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'

const MAX_FILES = 20_000
const MAX_SHOWN = 30
/** Milliseconds for which a listing of the folder is reused. */
const LISTING_MS = 5_000
/** Maximum milliseconds for a listing. Only the paths found until then are suggested. */
const MAX_LISTING_MS = 10_000

/** Creates the completion of the input. Paths are listed in a thread; a slow or failed listing only leaves suggestions out. */
export function createAutocomplete(
  chat: ChatContext,
  commands: readonly SlashCommand[],
): AutocompleteProvider {
  const listFiles = createFileListing(chat.start.folder)
  return {
    triggerCharacters: ['@'],
    async getSuggestions(lines, cursorLine, cursorCol, { signal }) {
      const typed = (lines[cursorLine] ?? '').slice(0, cursorCol)
      const path = /(?:^|\s)@([^\s@]*)$/.exec(typed)?.[1]
      // A listing is aborted when the user types on. That is not a failure.
      if (path !== undefined)
        return listFiles(signal).then(
          (files) => suggestFiles(files, path),
          () => null,
        )
      return cursorLine === 0 && typed.startsWith('/') ? suggestCommand(chat, commands, typed) : null
    },
    applyCompletion(lines, cursorLine, cursorCol, item, prefix) {
      const line = lines[cursorLine] ?? ''
      // Text typed since the list was made must not be overwritten.
      if (!line.slice(0, cursorCol).endsWith(prefix)) return { lines, cursorLine, cursorCol }
      const start = line.slice(0, cursorCol - prefix.length)
      const inserted = `${item.value} `
      const changed = [...lines]
      changed[cursorLine] = `${start}${inserted}${line.slice(cursorCol)}`
      return { lines: changed, cursorLine, cursorCol: start.length + inserted.length }
    },
    shouldTriggerFileCompletion: () => false,
  }
}

function createFileListing(folder: string): (signal: AbortSignal) => Promise<readonly string[]> {
  let known: { readonly at: number; readonly files: readonly string[] } | null = null
  return async (signal) => {
    if (known !== null && Date.now() - known.at < LISTING_MS) return known.files
    const files: string[] = []
    const limits = { signal, now: Date.now, deadline: Date.now() + MAX_LISTING_MS }
    await runSearchInThread<WalkedFile>(
      { kind: 'list', root: folder, glob: null },
      limits,
      ({ relativePath }) => {
        files.push(relativePath)
        return files.length < MAX_FILES
      },
    )
    known = { at: Date.now(), files }
    return files
  }
}

function suggestFiles(files: readonly string[], typed: string): AutocompleteSuggestions | null {
  const found = typed === '' ? files : fuzzyFilter([...files], typed, (file) => file)
  const items = found.slice(0, MAX_SHOWN).map((file): AutocompleteItem => {
    const label = toSafeLine(file)
    return { value: /\s/.test(file) ? `@"${file}"` : `@${file}`, label }
  })
  return items.length === 0 ? null : { items, prefix: `@${typed}` }
}

async function suggestCommand(
  chat: ChatContext,
  commands: readonly SlashCommand[],
  typed: string,
): Promise<AutocompleteSuggestions | null> {
  const [, name = '', argument] = /^\/(\S*)(?:\s+(.*))?$/.exec(typed) ?? []
  if (argument === undefined && !typed.endsWith(' ')) return suggestNames(chat, commands, name)
  const command = commands.find((one) => one.name === name)
  const values = (await command?.complete?.(chat, argument ?? '')) ?? []
  const items = values.map((value) => ({ value, label: toSafeLine(value) }))
  // No list if the argument is already complete, because the list would catch the Enter key that sends the prompt.
  return items.length === 0 || values.includes(argument ?? '') ? null : { items, prefix: argument ?? '' }
}

async function suggestNames(
  chat: ChatContext,
  commands: readonly SlashCommand[],
  typed: string,
): Promise<AutocompleteSuggestions | null> {
  const files = await chat.agent.listPromptFiles().catch(() => [])
  const own = new Set(commands.map(({ name }) => name))
  const all = [
    ...commands.map(({ name, args, description }) => ({ name, args, description })),
    ...files
      .filter(({ isForUser, name }) => isForUser && !own.has(name))
      .map(({ name, description }) => ({ name, args: '', description })),
  ]
  const begin = all.filter(({ name }) => name.startsWith(typed))
  const others = fuzzyFilter(
    all.filter(({ name }) => !name.startsWith(typed)),
    typed,
    ({ name }) => name,
  )
  const items = [...begin, ...(typed.length > 1 ? others : [])].map(({ name, args, description }) => ({
    value: `/${name}`,
    label: toSafeLine(`/${name}${args === '' ? '' : ` ${args}`}`),
    description: toSafeLine(description),
  }))
  return items.length === 0 ? null : { items, prefix: `/${typed}` }
}
