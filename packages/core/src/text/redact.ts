/**
 * Removes credentials from texts before they are shown or stored elsewhere; records in the log are never changed. Issued
 * tokens are known by their prefix, other secrets by the words before them. A new kind goes into `ISSUED_TOKENS` or
 * `NAMED_SECRETS`.
 */

/** What stands in the place of a removed credential. */
export const REDACTED = '[redacted]'

/**
 * Source of a regular expression. A text without any of these words needs only the patterns for issued tokens and
 * `UNCUED_PATTERNS`. It must match the first word of every command in `PASSWORD_OPTIONS`.
 */
export const SECRET_CUES: string =
  'pass|pwd|secret|token|key|auth|bearer|cookie|credential|://|\\b(?:curl|mysql|mariadb|docker|podman|nerdctl|buildah|helm|oras|az\\b|mongo|redis-cli|openssl|7z)'

/** A cheap test that runs before the many credential patterns, since most texts contain no credential. */
const SECRET_CUE = new RegExp(SECRET_CUES, 'i')
/** Every issued token has at least this many characters. */
const LONG_WORD_LENGTH = 15

/** Texts of at least this many characters are worth remembering. */
const LONG_TEXT_CHARACTERS = 50_000

/** Creates a `redact` that keeps the last long text and its result, for work that redacts the same prompt many times. */
export function createCachingRedactor(): (text: string) => string {
  let last = { given: '', redacted: '' }
  return (text) => {
    if (text.length < LONG_TEXT_CHARACTERS) return redact(text)
    if (text !== last.given && text !== last.redacted) last = { given: text, redacted: redact(text) }
    return last.redacted
  }
}

/**
 * Lists the words of a text with at least 15 characters, as all issued tokens are. Reads backwards from where the next
 * such word would have its 15th character. At a character that is no part of a word it goes on 15 characters after
 * that, so that most of a long text is never read.
 */
function listLongWords(text: string): readonly string[] {
  const words: string[] = []
  let least = LONG_WORD_LENGTH - 1
  while (least < text.length) {
    let start = least
    while (start > least - LONG_WORD_LENGTH && isWordCharacter(text.charCodeAt(start))) start -= 1
    let end = start + 1
    if (start === least - LONG_WORD_LENGTH) {
      end = least + 1
      while (end < text.length && isWordCharacter(text.charCodeAt(end))) end += 1
      words.push(text.slice(start + 1, end))
    }
    least = end + LONG_WORD_LENGTH - 1
  }
  return words
}

/** True for a letter, a digit or one of `-./:_+=`: issued tokens have no others. */
function isWordCharacter(code: number): boolean {
  const isLetter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
  return isLetter || (code >= 45 && code <= 58) || code === 95 || code === 43 || code === 61
}

/** Replaces every recognised credential in a text with `[redacted]`; secrets of unknown form stay. Idempotent. */
export function redact(text: string): string {
  const hasCue = SECRET_CUE.test(text)
  const words = listLongWords(text).join(' ')
  if (!hasCue && words === '') return text
  // A cue is looked for once, in the given text: what is put in the place of a credential contains none.
  const isCued = new Map(PATTERN_CUES.map((cue) => [cue, cue.test(text)]))
  const patterns = [
    ...(hasCue ? [PRIVATE_KEY] : []),
    ...(words !== '' && ANY_ISSUED_TOKEN.test(words) ? ISSUED_TOKENS : []),
    ...(hasCue ? CUED_PATTERNS : UNCUED_PATTERNS),
  ]
  return patterns.reduce(
    (left, { pattern, cue }) =>
      cue === undefined || isCued.get(cue) === true ? left.replace(pattern, replaceSecret) : left,
    text,
  )
}

/** At least so many characters of a long text are redacted first when only its beginning is shown. */
const BEGINNING_CHARACTERS = 4_000

/**
 * Returns the first `length` characters of the redacted text, with each run of white space as one blank. Of a long text only
 * the beginning is redacted, up to the end of a line, since patterns match within a line or across white space; the whole
 * text is redacted if less than twice `length` is left of it.
 */
export function toRedactedPreview(text: string, length: number): string {
  const shorten = (part: string): string => redact(part).replace(/\s+/g, ' ').trim()
  const end = text.indexOf('\n', Math.max(BEGINNING_CHARACTERS, 2 * length))
  const beginning = end === -1 ? '' : shorten(text.slice(0, end))
  return (beginning.length >= 2 * length ? beginning : shorten(text)).slice(0, length)
}

/**
 * Returns a JSON-like value with every string in it redacted by `redactText`. Parts without a credential stay the same
 * objects. The value may not contain itself.
 */
export function redactStrings<Value>(value: Value, redactText: (text: string) => string = redact): Value {
  // Strings are redacted once, since a report repeats names of models, tools and files.
  const known = new Map<string, string>()
  const redactOnce = (text: string): string => {
    const redacted = known.get(text) ?? redactText(text)
    known.set(text, redacted)
    return redacted
  }
  return redactValue(value, redactOnce) as Value
}

function redactValue(value: unknown, redactText: (text: string) => string): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  // Most of a report is numbers and texts without a credential, so nothing is copied before the first change.
  const fields = value as Readonly<Record<string, unknown>>
  let copy: Record<string, unknown> | null = null
  for (const field of Object.keys(fields)) {
    const given = fields[field]
    if (typeof given === 'number') continue
    const redacted = redactValue(given, redactText)
    if (redacted === given) continue
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>
    copy[field] = redacted
  }
  return copy ?? value
}

/** Replaces a matched credential but keeps the named group `kept`; the last argument of a replacer holds the named groups. */
function replaceSecret(_match: string, ...rest: readonly unknown[]): string {
  const groups = rest.at(-1)
  const kept = typeof groups === 'object' && groups !== null && 'kept' in groups ? groups.kept : ''
  return `${typeof kept === 'string' ? kept : ''}${REDACTED}`
}

/** A pattern that recognises one kind of credential. Patterns that would also match ordinary code, hashes or ids are not used. */
interface SecretPattern {
  readonly name: string
  /** A regular expression with the flag `g`. The named group `kept`, if present, precedes the secret and is not replaced. */
  readonly pattern: RegExp
  /** One of `PATTERN_CUES`: a cheap test that every text with such a credential passes. */
  readonly cue?: RegExp
}

/** Matches a secret name with what stands between it and its value, in any of the ways of an assignment. */
const ASSIGNED_NAME =
  /(?:pass(?:word|wd|phrase)|pwd|secret|key|token|credentials?)[0-9]{0,2}(?:[_-](?:key|value|id|base)){0,2}\\?["']?\s*[:=]/i
const ATLAS_TOKEN = /\.atlasv1\./
const URL_USER = /:\/\/[^\s/:@"'<>]*:/
const PATTERN_CUES: readonly RegExp[] = [ASSIGNED_NAME, ATLAS_TOKEN, URL_USER]

/** A lookahead that excludes values which are clearly not secrets: a reference, a placeholder, a keyword. */
const NOT_A_SECRET: string =
  '(?!\\[redacted\\]|[$<{(*[]|(?:process|os|env|self|this|config|settings|options)\\.|(?:null|none|nil|true|false|undefined|string|str|bytes|number|int|bool|boolean|any|unknown|optional|required|x{3,}|\\.{3}|…|your[_-]|my[_-]|example|changeme|placeholder|redacted)(?![A-Za-z0-9]))'

// Passwords after command-line options such as `-p`, whose meaning depends on the command.

/** Creates a pattern for a quoted value after `option` within the same command. */
function optionPatternQuoted(name: string, command: string, option: string): SecretPattern {
  const kept = `(?<kept>(?<![A-Za-z0-9_-])(?:${command})\\b[^\\r\\n|;&]{0,400}?\\s${option}`
  const quoted = `(?<quote>["'])(?=[^\\r\\n]*?\\k<quote>))${NOT_A_SECRET}(?:(?!\\k<quote>)[^\\r\\n])+`
  return { name, pattern: new RegExp(`${kept}${quoted}`, 'g') }
}

function optionPatternPlain(name: string, command: string, option: string): SecretPattern {
  const kept = `(?<kept>(?<![A-Za-z0-9_-])(?:${command})\\b[^\\r\\n|;&]{0,400}?\\s${option})`
  return { name, pattern: new RegExp(`${kept}(?!["'-])${NOT_A_SECRET}[^\\s"']{3,}`, 'g') }
}

const PASSWORD_OPTIONS: readonly (readonly [command: string, option: string])[] = [
  // `-p` counts only without a space: `mysql -p name` asks for the password, and `name` is a database.
  ['mysql(?:dump|admin|import|show|check|sh|pump|slap)?|mariadb(?:-[a-z]+)?', '-p'],
  ['sshpass', '-p[ \\t]*'],
  ['(?:docker|podman|nerdctl|buildah|helm registry|oras|az acr) login', '-p[ \\t=]*'],
  ['(?:mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport)', '-p[ \\t]*'],
  ['redis-cli', '-a[ \\t]*'],
  ['curl', '(?:-u|--user)[ =]?[^\\s:"\\\']+:'],
  ['openssl', '-pass(?:in|out)?[ \\t]+pass:'],
  ['7z[az]?', '-p'],
]

const COMMAND_SECRETS: readonly SecretPattern[] = [
  ...PASSWORD_OPTIONS.flatMap(([command, option]) => [
    optionPatternQuoted(`quoted, of ${command}`, command, option),
    optionPatternPlain(`of ${command}`, command, option),
  ]),
  // The next pattern matches user and password in one quoted argument, as in `curl -u "user:password"`.
  {
    name: 'user and password',
    pattern:
      /(?<kept>(?<![A-Za-z0-9])curl\b[^\r\n|;]*?\s(?:-u|--user)[ =]?["'][^\s:"']+:)(?!\[redacted\])[^\s"'[$]{3,}/g,
  },
]

// Tokens that are recognised by their issuer's prefix, such as `ghp_`.

const TOKEN_CHARACTER = '[A-Za-z0-9_-]'

/** Creates a token pattern that does not match inside a word or a longer token, since ordinary words may end in the prefix. */
function tokenPattern(name: string, body: string): SecretPattern {
  return { name, pattern: new RegExp(`(?<![A-Za-z0-9_-])${body}`, 'g') }
}

/** Creates a token pattern that also matches directly after other letters, as in `-pghp_…`. */
function prefixPattern(name: string, body: string): SecretPattern {
  return { name, pattern: new RegExp(body, 'g') }
}

const ISSUED_TOKENS: readonly SecretPattern[] = [
  tokenPattern('anthropic', `sk-ant-${TOKEN_CHARACTER}{16,}`),
  tokenPattern('openai', `sk-(?:proj|svcacct|admin|or-v1|or)-${TOKEN_CHARACTER}{16,}`),
  // After a letter, `sk-` could be the end of `task-` or `disk-`, so the rest must look random.
  prefixPattern(
    'glued sk',
    `sk-(?:ant|proj|svcacct|admin|or-v1|or)-(?=${TOKEN_CHARACTER}*[A-Z])(?=${TOKEN_CHARACTER}*[a-z])(?=${TOKEN_CHARACTER}*[0-9])${TOKEN_CHARACTER}{24,}`,
  ),
  // Old keys have only the prefix `sk-`; mixed case and digits distinguish these keys from a hyphenated name.
  tokenPattern('sk', `sk-(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{20,}`),
  prefixPattern('github', `(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})`),
  prefixPattern('gitlab', `gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-${TOKEN_CHARACTER}{20,}`),
  prefixPattern('slack', `(?:xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})`),
  prefixPattern('aws key id', `(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])`),
  prefixPattern('google', `AIza${TOKEN_CHARACTER}{35}(?![A-Za-z0-9_-])`),
  prefixPattern(
    'google oauth',
    `(?:ya29\\.${TOKEN_CHARACTER}{20,}|GOCSPX-${TOKEN_CHARACTER}{20,}|(?<![A-Za-z0-9_-])1//0${TOKEN_CHARACTER}{30,})`,
  ),
  prefixPattern('stripe', `(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,})`),
  prefixPattern('npm', `npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])`),
  prefixPattern('pypi', `pypi-AgE${TOKEN_CHARACTER}{50,}`),
  tokenPattern('hugging face', `(?:hf|api_org)_[A-Za-z0-9]{30,}`),
  prefixPattern('sendgrid', `SG\\.${TOKEN_CHARACTER}{16,}\\.${TOKEN_CHARACTER}{30,}`),
  tokenPattern('twilio', `SK[0-9a-f]{32}(?![0-9a-zA-Z])`),
  tokenPattern('mailgun', `key-[0-9a-f]{32}(?![0-9a-zA-Z])`),
  prefixPattern('digitalocean', `do[oprt]_v1_[0-9a-f]{64}`),
  prefixPattern('databricks', `dapi[0-9a-f]{32}(?:-\\d)?(?![0-9a-zA-Z])`),
  tokenPattern('vault', `hv[sbr]\\.${TOKEN_CHARACTER}{24,}`),
  prefixPattern('groq', `gsk_[A-Za-z0-9]{40,}`),
  prefixPattern('xai', `xai-[A-Za-z0-9]{40,}`),
  tokenPattern('replicate', `r8_[A-Za-z0-9]{30,}`),
  prefixPattern('perplexity', `pplx-[A-Za-z0-9]{40,}`),
  prefixPattern('langsmith', `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`),
  prefixPattern('linear', `lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
  prefixPattern('notion', `(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})(?![A-Za-z0-9])`),
  prefixPattern('shopify', `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`),
  prefixPattern('docker', `dckr_(?:pat|oat)_${TOKEN_CHARACTER}{20,}`),
  prefixPattern('atlassian', `ATATT3x[A-Za-z0-9_=-]{50,}`),
  prefixPattern('sentry', `sntry[su]_[A-Za-z0-9+/=_-]{40,}`),
  prefixPattern('grafana', `(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,})`),
  prefixPattern('new relic', `NRAK-[A-Z0-9]{27}`),
  prefixPattern('postman', `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`),
  prefixPattern('figma', `figd_${TOKEN_CHARACTER}{40,}`),
  prefixPattern('supabase', `sbp_[0-9a-f]{40}`),
  prefixPattern('doppler', `dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]+\\.)?[A-Za-z0-9]{40,}`),
  prefixPattern('tailscale', `tskey-(?:auth|api|client|scim|webhook)-${TOKEN_CHARACTER}{16,}`),
  { ...tokenPattern('terraform', `[A-Za-z0-9]{14}\\.atlasv1\\.${TOKEN_CHARACTER}{60,}`), cue: ATLAS_TOKEN },
  prefixPattern('planetscale', `pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}`),
  tokenPattern('telegram', `\\d{8,10}:AA${TOKEN_CHARACTER}{33}(?![A-Za-z0-9_-])`),
  tokenPattern('discord', `[MNO][A-Za-z0-9_-]{23,27}\\.${TOKEN_CHARACTER}{6}\\.${TOKEN_CHARACTER}{27,}`),
  prefixPattern('age', `AGE-SECRET-KEY-1[0-9A-Z]{58}`),
  prefixPattern('jwt', `eyJ${TOKEN_CHARACTER}{8,}\\.eyJ${TOKEN_CHARACTER}{8,}\\.${TOKEN_CHARACTER}*`),
]

/** Matches if one of the token patterns does. Most texts have no token, and are then searched only once. */
const ANY_ISSUED_TOKEN = new RegExp(ISSUED_TOKENS.map(({ pattern }) => pattern.source).join('|'))

// Credentials that are recognised by the text before them: a header, a URL, the name of a field.

/**
 * Matches the words in a field name that mark its value as a secret, with `-`, `_` or nothing between their parts. What
 * may precede them is `NAME_PREFIX`.
 */
const SECRET_WORD =
  '(?:pass(?:word|wd|phrase)|pwd(?!["\']?[ \\t]*[:=][ \\t]*["\']?[/~.])|secret|(?:api|access|auth|private|secret|signing|encryption|account|client)[_-]?(?:key|secret)|(?:access|auth|api|refresh|bearer|session|id|csrf|bot|oauth)?[_-]?token|credentials?)'
/** Matches what may precede a secret word in a name. Checked after the word is found, since most names have no such word. */
const NAME_PREFIX = '(?<![A-Za-z0-9_])(?:[A-Za-z0-9]{1,40}[_.-]){0,6}[A-Za-z0-9]{0,24}?'
const NAME_END = '[0-9]{0,2}(?:[_-](?:key|value|id|base)){0,2}'
const SECRET_NAME = `(?=${SECRET_WORD})(?<=${NAME_PREFIX})${SECRET_WORD}${NAME_END}`

/** A lookahead that excludes function calls and index expressions, since these are code rather than secret values. */
const NOT_CODE = '(?![A-Za-z_$][\\w$.]*[([])'
const VALUE_CHARACTER = '[^\\s"\'`,;&|(){}<>\\\\]'
/** Matches an equals sign with spaces. Such an assignment is usually code, so its value must look random to be redacted. */
const SPACED_ASSIGNMENT = '(?:[ \\t]+:?=[ \\t]*|:?=[ \\t]+|:=)(?![=>~"\'`\\\\])'

const URL_SIGNATURE: SecretPattern = {
  name: 'url signature',
  pattern:
    /(?<kept>[?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|access_token|api_key|apikey|key|token|auth|password|secret|code)=)(?!\[redacted\]|[$<{*])[^\s&"'<>#\\]{8,}/gi,
}

const CONNECTION_STRING: SecretPattern = {
  name: 'connection string',
  pattern: /(?<kept>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|Password|Pwd)=)[^\s;"'[]{8,}/g,
}

const NAMED_SECRETS: readonly SecretPattern[] = [
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
    cue: URL_USER,
  },
  URL_SIGNATURE,
  {
    name: 'quoted assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}\\\\?["']?\\s*(?::=|=>|[:=])\\s*(?<quote>\\\\?["'\`]))${NOT_A_SECRET}(?:(?!\\k<quote>)[^\\r\\n]){4,}?(?=\\k<quote>)`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'plain assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}=)(?!["'\`\\\\=])${NOT_A_SECRET}(?![A-Za-z_][\\w.]*\\()[^\\s"'\`,;&|)\\\\]{6,}`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'spaced assignment',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}${SPACED_ASSIGNMENT})${NOT_A_SECRET}${NOT_CODE}(?=${VALUE_CHARACTER}*[0-9]|${VALUE_CHARACTER}+[!@#%^~])(?=${VALUE_CHARACTER}*[A-Za-z])${VALUE_CHARACTER}{6,}`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'spaced password of figures',
    pattern: new RegExp(
      `(?<kept>(?=pass)(?<=${NAME_PREFIX})pass(?:word|wd|phrase)${SPACED_ASSIGNMENT})[0-9]{6,}(?![A-Za-z0-9.])`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'plain field',
    pattern: new RegExp(
      `(?<kept>${SECRET_NAME}:[ \\t]+)(?!["'\`\\\\])${NOT_A_SECRET}(?=[^\\s]*[0-9])(?=[^\\s]*[A-Za-z])[^\\s"'\`,;(){}<>\\\\]{8,}`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'passphrase of words',
    pattern: new RegExp(
      `(?<kept>(?=pass)(?<=${NAME_PREFIX})pass(?:word|wd|phrase)[0-9]{0,2}:[ \\t]+)${NOT_A_SECRET}[A-Za-z0-9]+(?:-[A-Za-z0-9]+){2,}(?![^\\s,;.!?)])`,
      'gi',
    ),
    cue: ASSIGNED_NAME,
  },
  {
    name: 'option',
    pattern: new RegExp(
      `(?<kept>(?<![A-Za-z0-9])--?${NAME_PREFIX}${SECRET_WORD}${NAME_END}[ \\t]+["']?)(?!-)${NOT_A_SECRET}[^\\s"']{6,}`,
      'gi',
    ),
  },
  CONNECTION_STRING,
]

// All credential patterns in the order of use: a whole key before its parts, certain patterns before likely ones.

const PRIVATE_KEY: SecretPattern = {
  name: 'private key',
  pattern: /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY( BLOCK)?-----[\s\S]*?(?:-----END \1PRIVATE KEY\2-----|$)/g,
}

const CUED_PATTERNS: readonly SecretPattern[] = [...NAMED_SECRETS, ...COMMAND_SECRETS]

/** The patterns that can match a text without any of the words in `SECRET_CUES`. */
const UNCUED_PATTERNS: readonly SecretPattern[] = [URL_SIGNATURE, CONNECTION_STRING]
