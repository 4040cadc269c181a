/** Credentials that give themselves away by their own letters: issued with a prefix, so that scanners can find them. */
import type { SecretPattern } from './secret-pattern.ts'

const WORD = '[A-Za-z0-9_-]'

/** Not in the middle of a word or of a longer token: its prefix is one that words may end in. */
function token(name: string, body: string): SecretPattern {
  return { name, pattern: new RegExp(`(?<![A-Za-z0-9_-])${body}`, 'g') }
}

/** Told by its prefix even where that is glued to a word, as in `-pghp_…`. */
function glued(name: string, body: string): SecretPattern {
  return { name, pattern: new RegExp(body, 'g') }
}

export const ISSUED_TOKENS: readonly SecretPattern[] = [
  token('anthropic', `sk-ant-${WORD}{16,}`),
  token('openai', `sk-(?:proj|svcacct|admin|or-v1|or)-${WORD}{16,}`),
  // Behind a letter they might be the end of `task-` or `disk-`: only a random look tells.
  glued(
    'glued sk',
    `sk-(?:ant|proj|svcacct|admin|or-v1|or)-(?=${WORD}*[A-Z])(?=${WORD}*[a-z])(?=${WORD}*[0-9])${WORD}{24,}`,
  ),
  // Old keys have no more than `sk-`: letters of both cases and digits tell them from a name with hyphens.
  token('sk', `sk-(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{20,}`),
  glued('github', `(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})`),
  glued('gitlab', `gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-${WORD}{20,}`),
  glued('slack', `(?:xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})`),
  glued('aws key id', `(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])`),
  glued('google', `AIza${WORD}{35}(?![A-Za-z0-9_-])`),
  glued('google oauth', `(?:ya29\\.${WORD}{20,}|GOCSPX-${WORD}{20,}|(?<![A-Za-z0-9_-])1//0${WORD}{30,})`),
  glued('stripe', `(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,})`),
  glued('npm', `npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])`),
  glued('pypi', `pypi-AgE${WORD}{50,}`),
  token('hugging face', `(?:hf|api_org)_[A-Za-z]{30,}`),
  glued('sendgrid', `SG\\.${WORD}{16,}\\.${WORD}{30,}`),
  token('twilio', `SK[0-9a-f]{32}(?![0-9a-zA-Z])`),
  token('mailgun', `key-[0-9a-f]{32}(?![0-9a-zA-Z])`),
  glued('digitalocean', `do[oprt]_v1_[0-9a-f]{64}`),
  glued('databricks', `dapi[0-9a-f]{32}(?:-\\d)?(?![0-9a-zA-Z])`),
  token('vault', `hv[sbr]\\.${WORD}{24,}`),
  glued('groq', `gsk_[A-Za-z0-9]{40,}`),
  glued('xai', `xai-[A-Za-z0-9]{40,}`),
  token('replicate', `r8_[A-Za-z0-9]{30,}`),
  glued('perplexity', `pplx-[A-Za-z0-9]{40,}`),
  glued('langsmith', `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`),
  glued('linear', `lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
  glued('notion', `(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})(?![A-Za-z0-9])`),
  glued('shopify', `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`),
  glued('docker', `dckr_(?:pat|oat)_${WORD}{20,}`),
  glued('atlassian', `ATATT3x[A-Za-z0-9_=-]{50,}`),
  glued('sentry', `sntry[su]_[A-Za-z0-9+/=_-]{40,}`),
  glued('grafana', `(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,})`),
  glued('new relic', `NRAK-[A-Z0-9]{27}`),
  glued('postman', `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`),
  glued('figma', `figd_${WORD}{40,}`),
  glued('supabase', `sbp_[0-9a-f]{40}`),
  glued('doppler', `dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]+\\.)?[A-Za-z0-9]{40,}`),
  glued('tailscale', `tskey-(?:auth|api|client|scim|webhook)-${WORD}{16,}`),
  token('terraform', `[A-Za-z0-9]{14}\\.atlasv1\\.${WORD}{60,}`),
  glued('planetscale', `pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}`),
  token('telegram', `\\d{8,10}:AA${WORD}{33}(?![A-Za-z0-9_-])`),
  token('discord', `[MNO][A-Za-z0-9_-]{23,27}\\.${WORD}{6}\\.${WORD}{27,}`),
  glued('age', `AGE-SECRET-KEY-1[0-9A-Z]{58}`),
  glued('jwt', `eyJ${WORD}{8,}\\.eyJ${WORD}{8,}\\.${WORD}*`),
]
