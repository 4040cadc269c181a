/** Credentials known only by what stands before them: a header, an address, the name of a field. */
import { NO_VALUE, type SecretPattern } from './secret-pattern.ts'

/** Words that make of what follows a secret: with anything before them, `-`, `_` or nothing between their parts. */
const SECRET_WORD =
  '(?:pass(?:word|wd|phrase)|pwd(?!["\']?[ \\t]*[:=][ \\t]*["\']?[/~.])|secret|(?:api|access|auth|private|secret|signing|encryption|account|client)[_-]?(?:key|secret)|(?:access|auth|api|refresh|bearer|session|id|csrf|bot|oauth)?[_-]?token|credentials?)'
const BEFORE = '(?<![A-Za-z0-9_])(?:[A-Za-z0-9]{1,40}[_.-]){0,6}[A-Za-z0-9]{0,24}?'
const SECRET_NAME = `${BEFORE}${SECRET_WORD}[0-9]{0,2}(?:[_-](?:key|value|id|base)){0,2}`

/** The name of a variable or what is called like a function: code, and no value. */
const NO_CODE = '(?![A-Za-z_$][\\w$.]*[([])'
const PLAIN = '[^\\s"\'`,;&|(){}<>\\\\]'
/** With room around it an equals sign is more often code than configuration: the value must look random. */
const SPACED = '(?:[ \\t]+:?=[ \\t]*|:?=[ \\t]+|:=)(?![=>~"\'`\\\\])'

export const SPOKEN_SECRETS: readonly SecretPattern[] = [
  {
    name: 'authorization',
    pattern:
      /(?<kept>\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest|negotiate)\s+)?)(?!\[redacted\]|[$<{*]|(?:bearer|basic|token|digest|negotiate)\s)[^\s"',;\\]{6,}/gi,
  },
  { name: 'bearer', pattern: /(?<kept>\bbearer\s+)(?=[^\s"']*[0-9])[A-Za-z0-9._~+/=-]{16,}/gi },
  {
    name: 'cookie',
    pattern: /(?<kept>\b(?:set-)?cookie["']?:\s*["']?)(?!\[redacted\])[^\s=;"']+=[^\r\n"']{8,}/gi,
  },
  {
    name: 'url password',
    pattern:
      /(?<kept>\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"'<>]*:)(?!\[redacted\]|[$<{*])[^\s/@"'<>]{3,}(?=@)/gi,
  },
  {
    name: 'url signature',
    pattern:
      /(?<kept>[?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|access_token|api_key|apikey|key|token|auth|password|secret|code)=)(?!\[redacted\]|[$<{*])[^\s&"'<>#\\]{8,}/gi,
  },
  {
    name: 'quoted assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}\\\\?["']?\\s*(?::=|=>|[:=])\\s*(?<quote>\\\\?["'\`]))${NO_VALUE}(?:(?!\\k<quote>)[^\\r\\n]){4,}?(?=\\k<quote>)`,
      'gi',
    ),
  },
  {
    name: 'plain assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}=)(?!["'\`\\\\=])${NO_VALUE}(?![A-Za-z_][\\w.]*\\()[^\\s"'\`,;&|)\\\\]{6,}`,
      'gi',
    ),
  },
  {
    name: 'spaced assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}${SPACED})${NO_VALUE}${NO_CODE}(?=${PLAIN}*[0-9]|${PLAIN}+[!@#%^~])(?=${PLAIN}*[A-Za-z])${PLAIN}{6,}`,
      'gi',
    ),
  },
  {
    name: 'spaced password of figures',
    pattern: new RegExp(`(?<kept>${BEFORE}pass(?:word|wd|phrase)${SPACED})[0-9]{6,}(?![A-Za-z0-9.])`, 'gi'),
  },
  {
    name: 'plain field',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}:[ \\t]+)(?!["'\`\\\\])${NO_VALUE}(?=[^\\s]*[0-9])(?=[^\\s]*[A-Za-z])[^\\s"'\`,;(){}<>\\\\]{8,}`,
      'gi',
    ),
  },
  {
    name: 'option',
    pattern: new RegExp(
      `(?<kept>(?<![A-Za-z0-9])--?${SECRET_NAME}[ \\t]+["']?)(?!-)${NO_VALUE}[^\\s"']{6,}`,
      'gi',
    ),
  },
  {
    name: 'connection string',
    pattern: /(?<kept>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|Password|Pwd)=)[^\s;"'[]{8,}/g,
  },
]
