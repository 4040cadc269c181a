/** Files that must not outlive the process. A killed process leaves them; whoever reads them has to see that. */
import { readFileSync, unlinkSync } from 'node:fs'

const contents = new Map<string, string>()

/** One listener for all: many sessions may be open at once. */
export function removeAtExit(path: string, content: string): () => void {
  if (contents.size === 0) process.on('exit', removeAll)
  contents.set(path, content)
  return () => {
    if (contents.get(path) === content) contents.delete(path)
    if (contents.size === 0) process.off('exit', removeAll)
  }
}

function removeAll(): void {
  for (const [path, content] of contents) removeIfOurs(path, content)
}

function removeIfOurs(path: string, content: string): void {
  try {
    if (readFileSync(path, 'utf8') === content) unlinkSync(path)
  } catch {
    // Gone already, or out of reach: nobody is left to tell.
  }
}
