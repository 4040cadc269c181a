/** All that is looked for, in order: a whole key before its parts, what is sure before what is likely. */
import { COMMAND_SECRETS } from './command-secrets.ts'
import { ISSUED_TOKENS } from './issued-tokens.ts'
import type { SecretPattern } from './secret-pattern.ts'
import { SPOKEN_SECRETS } from './spoken-secrets.ts'

const PRIVATE_KEY: SecretPattern = {
  name: 'private key',
  pattern: /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY( BLOCK)?-----[\s\S]*?(?:-----END \1PRIVATE KEY\2-----|$)/g,
}

export const SECRET_PATTERNS: readonly SecretPattern[] = [
  PRIVATE_KEY,
  ...ISSUED_TOKENS,
  ...SPOKEN_SECRETS,
  ...COMMAND_SECRETS,
]
