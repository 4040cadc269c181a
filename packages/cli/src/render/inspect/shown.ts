/** Text of a log on its way to the screen: without secrets, in one line, unable to drive the terminal. */
import { homedir } from 'node:os'
import { basename } from 'node:path'
import { redact, repositoryOf } from 'tidemark'

export function shown(text: string): string {
  return (
    redact(text)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
      .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
      // Marks that turn the direction of what follows, or take no room.
      .replace(/[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
      .replace(/\s+/g, ' ')
      .trim()
  )
}

/** The person's own folder is `~`. */
export function shownPath(path: string, home: string = homedir()): string {
  const text = shown(path)
  const inside = insideOf(text, home)
  return inside === null ? text : inside === '' ? '~' : `~/${inside}`
}

/** The last part of the path of its repository. */
export function projectName(folder: string): string {
  const repository = repositoryOf(folder)
  return basename(repository) || repository
}

/** Within the session's project, from there; else as any path. */
export function projectPath(path: string, project: string | null): string {
  const inside = project === null ? null : insideOf(shown(path), shown(project))
  return inside === null || inside === '' ? shownPath(path) : inside
}

function insideOf(path: string, folder: string): string | null {
  if (folder === '' || folder === '/') return null
  if (path === folder) return ''
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : null
}
