/**
 * What credentials look like. Two kinds: those that give themselves away by their own letters, and those known
 * only by what stands before them. A pattern that would also take ordinary code, hashes or ids is left out.
 */
export interface SecretPattern {
  readonly name: string
  /** Global. Group `kept`, where there is one, stands before the secret and stays. */
  readonly pattern: RegExp
}

/** Not in the middle of a word or of a longer token. */
const START = '(?<![A-Za-z0-9_-])'
const WORD = '[A-Za-z0-9_-]'

function token(name: string, body: string): SecretPattern {
  return { name, pattern: new RegExp(`${START}${body}`, 'g') }
}

/** Issued with a prefix of their own, so that scanners can find them. */
const PREFIXED: readonly SecretPattern[] = [
  token('anthropic', `sk-ant-${WORD}{16,}`),
  token('openai', `sk-(?:proj|svcacct|admin|or-v1|or)-${WORD}{16,}`),
  // Old keys have no more than `sk-`: letters of both cases and digits tell them from a name with hyphens.
  token('sk', `sk-(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{20,}`),
  token('github', `(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})`),
  token('gitlab', `gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-${WORD}{20,}`),
  token('slack', `(?:xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})`),
  token('aws key id', `(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])`),
  token('google', `AIza${WORD}{35}(?![A-Za-z0-9_-])`),
  token('google oauth', `(?:ya29\\.${WORD}{20,}|GOCSPX-${WORD}{20,}|1//0${WORD}{30,})`),
  token('stripe', `(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,})`),
  token('npm', `npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])`),
  token('pypi', `pypi-AgE${WORD}{50,}`),
  token('hugging face', `(?:hf|api_org)_[A-Za-z]{30,}`),
  token('sendgrid', `SG\\.${WORD}{16,}\\.${WORD}{30,}`),
  token('twilio', `SK[0-9a-f]{32}(?![0-9a-zA-Z])`),
  token('mailgun', `key-[0-9a-f]{32}(?![0-9a-zA-Z])`),
  token('digitalocean', `do[oprt]_v1_[0-9a-f]{64}`),
  token('databricks', `dapi[0-9a-f]{32}(?:-\\d)?(?![0-9a-zA-Z])`),
  token('vault', `hv[sbr]\\.${WORD}{24,}`),
  token('groq', `gsk_[A-Za-z0-9]{40,}`),
  token('xai', `xai-[A-Za-z0-9]{40,}`),
  token('replicate', `r8_[A-Za-z0-9]{30,}`),
  token('perplexity', `pplx-[A-Za-z0-9]{40,}`),
  token('langsmith', `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`),
  token('linear', `lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
  token('notion', `(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})(?![A-Za-z0-9])`),
  token('shopify', `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`),
  token('docker', `dckr_(?:pat|oat)_${WORD}{20,}`),
  token('atlassian', `ATATT3x[A-Za-z0-9_=-]{50,}`),
  token('sentry', `sntry[su]_[A-Za-z0-9+/=_-]{40,}`),
  token('grafana', `(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,})`),
  token('new relic', `NRAK-[A-Z0-9]{27}`),
  token('postman', `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`),
  token('figma', `figd_${WORD}{40,}`),
  token('supabase', `sbp_[0-9a-f]{40}`),
  token('doppler', `dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]+\\.)?[A-Za-z0-9]{40,}`),
  token('tailscale', `tskey-(?:auth|api|client|scim|webhook)-${WORD}{16,}`),
  token('terraform', `[A-Za-z0-9]{14}\\.atlasv1\\.${WORD}{60,}`),
  token('planetscale', `pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}`),
  token('telegram', `\\d{8,10}:AA${WORD}{33}(?![A-Za-z0-9_-])`),
  token('discord', `[MNO][A-Za-z0-9_-]{23,27}\\.${WORD}{6}\\.${WORD}{27,}`),
  token('age', `AGE-SECRET-KEY-1[0-9A-Z]{58}`),
  token('jwt', `eyJ${WORD}{8,}\\.eyJ${WORD}{8,}\\.${WORD}*`),
]

/** Words that make of what follows a secret; `-`, `_` or nothing between their parts, and any prefix before them. */
const SECRET_NAME =
  '(?:[A-Za-z0-9]{1,40}[_.-]){0,6}(?:pass(?:word|wd|phrase)|pwd|secret|(?:api|access|auth|private|secret|signing|encryption|account|client)[_-]?(?:key|secret)|(?:access|auth|api|refresh|bearer|session|id|csrf|bot|oauth)?[_-]?token|credentials?)(?:[_-](?:key|value|id))?'

/** What is plainly no secret where one might stand: a reference, a placeholder, a word of a language. */
const NO_VALUE =
  '(?!\\[redacted\\]|[$<{(*[]|(?:null|none|nil|true|false|undefined|string|str|bytes|number|int|bool|boolean|any|unknown|optional|required|process\\.|os\\.|env\\.|self\\.|this\\.|config\\.|x{3,}|\\.{3}|…|your[_-]|my[_-]|example|changeme|placeholder|redacted)(?![A-Za-z0-9]))'

const SPOKEN: readonly SecretPattern[] = [
  {
    name: 'private key',
    pattern: /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY( BLOCK)?-----[\s\S]*?(?:-----END \1PRIVATE KEY\2-----|$)/g,
  },
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
      `(?<kept>(?<![A-Za-z0-9_])${SECRET_NAME}\\\\?["']?\\s*(?::=|=>|[:=])\\s*(?<quote>\\\\?["'\`]))${NO_VALUE}(?:(?!\\k<quote>)[^\\r\\n]){4,}?(?=\\k<quote>)`,
      'gi',
    ),
  },
  {
    name: 'plain assignment',
    pattern: new RegExp(
      `(?<kept>(?<![A-Za-z0-9_])${SECRET_NAME}=)(?!["'\`\\\\=])${NO_VALUE}(?![A-Za-z_][\\w.]*\\()[^\\s"'\`,;&|)\\\\]{6,}`,
      'gi',
    ),
  },
  {
    name: 'plain field',
    pattern: new RegExp(
      `(?<kept>(?<![A-Za-z0-9_])${SECRET_NAME}:[ \\t]+)(?!["'\`\\\\])${NO_VALUE}(?=[^\\s]*[0-9])(?=[^\\s]*[A-Za-z])[^\\s"'\`,;(){}<>\\\\]{8,}`,
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
  {
    name: 'user and password',
    pattern: /(?<kept>(?<![A-Za-z0-9])curl\b[^\r\n|;]*?\s(?:-u|--user)[ =]?["']?[^\s:"']+:)[^\s"'[$]{3,}/g,
  },
]

export const SECRET_PATTERNS: readonly SecretPattern[] = [
  ...SPOKEN.slice(0, 1),
  ...PREFIXED,
  ...SPOKEN.slice(1),
]
