/**
 * Highlights code for the terminal: comments, strings, numbers and keywords, by a few rules that fit most languages. It
 * never changes the text itself, and its time is linear in the length of the code.
 */
import type { Colors } from 'picocolors/types.js'

interface Language {
  readonly keywords: ReadonlySet<string>
  /** Beginnings of comments that end with the line. */
  readonly lineComments: readonly string[]
  readonly hasBlockComments: boolean
}

const C_LIKE = `abstract as async await bool boolean break case catch char class const continue declare default defer delete
  do double else enum export extends false final finally float fn for from func function go goto if impl implements import
  in instanceof int interface let long loop match mod mut namespace new nil null of package private protected pub public
  readonly return self short static string struct super switch this throw trait true try type typeof undefined unsafe use
  var void where while yield`
const PYTHON = `and as assert async await break class continue def del elif else except False finally for from global if import
  in is lambda None nonlocal not or pass raise return True try while with yield begin end module require then unless
  until nil self`
const SHELL = `case do done echo elif else esac exit export fi for function if in local return set shift then unset while cd`
const SQL = `select from where insert into values update set delete create table index drop alter join left right inner outer on
  group by order having limit as and or not null primary key references distinct union all`

const toLanguage = (words: string, lineComments: readonly string[], hasBlockComments: boolean): Language => ({
  keywords: new Set(words.split(/\s+/)),
  lineComments,
  hasBlockComments,
})

const LANGUAGES: readonly (readonly [names: RegExp, language: Language])[] = [
  [/^(py|python|rb|ruby)$/, toLanguage(PYTHON, ['#'], false)],
  [/^(sh|bash|zsh|shell|console|fish|dockerfile|makefile|ya?ml|toml|ini)$/, toLanguage(SHELL, ['#'], false)],
  [/^(sql|postgres|mysql)$/, toLanguage(`${SQL} ${SQL.toUpperCase()}`, ['--'], true)],
  [/^(text|txt|plain|markdown|md|diff|log)?$/, toLanguage('', [], false)],
]
const DEFAULT_LANGUAGE = toLanguage(C_LIKE, ['//'], true)

const TOKEN = /[A-Za-z_$][\w$]*|\d[\w.]*|\s+|[^\w\s]/g

/** Returns the lines of the code with colours. `name`: the language, as after a code fence; an unknown one is treated like C. */
export function highlightCode(code: string, name: string | undefined, colors: Colors): readonly string[] {
  const lines = code.split('\n')
  const key = (name ?? '').trim().toLowerCase()
  if (!colors.isColorSupported) return lines
  if (key === 'diff') return lines.map((line) => paintDiffLine(line, colors))
  const language = LANGUAGES.find(([names]) => names.test(key))?.[1] ?? DEFAULT_LANGUAGE
  let isInComment = false
  return lines.map((line) => {
    const painted = paintLine(line, language, isInComment, colors)
    isInComment = painted.isInComment
    return painted.text
  })
}

function paintDiffLine(line: string, colors: Colors): string {
  if (line.startsWith('+')) return colors.green(line)
  if (line.startsWith('-')) return colors.red(line)
  return line.startsWith('@@') ? colors.cyan(line) : line
}

function paintLine(
  line: string,
  language: Language,
  isInComment: boolean,
  colors: Colors,
): { readonly text: string; readonly isInComment: boolean } {
  let text = ''
  let at = 0
  while (at < line.length) {
    if (isInComment) {
      const end = line.indexOf('*/', at)
      if (end === -1) return { text: text + colors.dim(line.slice(at)), isInComment: true }
      text += colors.dim(line.slice(at, end + 2))
      at = end + 2
      isInComment = false
      continue
    }
    if (language.hasBlockComments && line.startsWith('/*', at)) {
      isInComment = true
      continue
    }
    if (language.lineComments.some((mark) => line.startsWith(mark, at)))
      return { text: text + colors.dim(line.slice(at)), isInComment: false }
    const token = readToken(line, at)
    text += paintToken(token, language, colors)
    at += token.length
  }
  return { text, isInComment }
}

/** Returns the token at a place: a string up to its closing quote on this line, or a word, a number, or a sign. */
function readToken(line: string, at: number): string {
  const first = line[at] ?? ''
  if (first === '"' || first === "'" || first === '`') {
    let end = at + 1
    while (end < line.length && line[end] !== first) end += line[end] === '\\' ? 2 : 1
    return line.slice(at, Math.min(line.length, end + 1))
  }
  TOKEN.lastIndex = at
  return TOKEN.exec(line)?.[0] ?? first
}

function paintToken(token: string, { keywords }: Language, colors: Colors): string {
  if (/^["'`]/.test(token) && token.length > 1) return colors.green(token)
  if (/^\d/.test(token)) return colors.yellow(token)
  return keywords.has(token) ? colors.magenta(token) : token
}
