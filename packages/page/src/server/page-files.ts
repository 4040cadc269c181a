/** The files of the page that the build creates: one document, one script, one style sheet. */
import { readFile } from 'node:fs/promises'
import { TidemarkError } from '@tidemark/core/errors'

/** The folders of the built page: beside the built package that contains this file, or, when run from sources, in the command's build. */
const FOLDERS = [new URL('./page/', import.meta.url), new URL('../../../cli/dist/page/', import.meta.url)]

interface PageFile {
  readonly type: string
  readonly content: string
}

const FILES: Readonly<Record<string, { readonly name: string; readonly type: string }>> = {
  '/page.js': { name: 'page.js', type: 'text/javascript; charset=utf-8' },
  '/page.css': { name: 'page.css', type: 'text/css; charset=utf-8' },
}

/** Returns the HTML document of the page. `head`: its scripts and styles, or links to them. `body`: data of an exported file. */
export function createPageDocument(head: string, body = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tidemark</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
<div id="page"><noscript>This page needs its script, which is part of it.</noscript></div>
${body}
</body>
</html>
`
}

/** Whose sessions a served page shows: `machine`: those of this machine's user. `team`: those of a team, to everyone with a key. */
type PageHost = 'machine' | 'team'

/** Returns what the server sends for a path: the document, script or style sheet; null for other paths. */
export async function readPageFile(path: string, host: PageHost): Promise<PageFile | null> {
  if (path === '/') {
    const head = `<meta name="tidemark-host" content="${host}">\n<link rel="stylesheet" href="/page.css">\n<script type="module" src="/page.js"></script>`
    return { type: 'text/html; charset=utf-8', content: createPageDocument(head) }
  }
  const file = Object.hasOwn(FILES, path) ? FILES[path] : undefined
  return file === undefined ? null : { type: file.type, content: await readBuiltFile(file.name) }
}

/** Reads a file that the build has made. Throws `io-failed` if the page is not built. */
export async function readBuiltFile(name: string): Promise<string> {
  for (const folder of FOLDERS) {
    const text = await readFile(new URL(name, folder), 'utf8').catch(() => null)
    if (text !== null) return text
  }
  throw new TidemarkError('io-failed', 'The page is not built: run `npm run build` in its repository.')
}
