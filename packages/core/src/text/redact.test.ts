import { describe, expect, it } from 'vitest'
import { redact, toRedactedPreview } from './redact.ts'

/** Made up here from parts, so that no scanner takes this file for a leak. */
const mixed = (length: number): string => 'aZ3kQ9xB7mT2'.repeat(20).slice(0, length)
const hex = (length: number): string => '0a1b2c3d4e5f6789'.repeat(10).slice(0, length)
const letters = (length: number): string => 'aZkQxBmTrW'.repeat(20).slice(0, length)
const capitals = (length: number): string => 'ABCDEFG234567'.repeat(10).slice(0, length)

describe('a credential that is known by its own letters', () => {
  it.each([
    ['Anthropic', `sk-ant-api03-${mixed(40)}`],
    ['OpenAI project', `sk-proj-${mixed(48)}`],
    ['OpenAI, old', `sk-${mixed(48)}`],
    ['OpenRouter', `sk-or-v1-${hex(64)}`],
    ['GitHub', `ghp_${mixed(36)}`],
    ['GitHub, server', `ghs_${mixed(36)}`],
    ['GitHub, fine-grained', `github_pat_${mixed(22)}_${mixed(59)}`],
    ['GitLab', `glpat-${mixed(20)}`],
    ['Slack bot', `xoxb-${'1234567890'}-${mixed(24)}`],
    ['Slack bot, the shortest', `xoxb-${'1234567890'}`],
    ['Slack app', `xapp-1-A0${capitals(8)}-${hex(32)}`],
    ['AWS', `AKIA${capitals(16)}`],
    ['AWS, for a session', `ASIA${capitals(16)}`],
    ['Google', `AIza${mixed(35)}`],
    ['Google OAuth', `ya29.${mixed(60)}`],
    ['Stripe', `sk_live_${mixed(24)}`],
    ['Stripe, hooks', `whsec_${mixed(32)}`],
    ['npm', `npm_${mixed(36)}`],
    ['PyPI', `pypi-AgE${mixed(60)}`],
    ['Hugging Face', `hf_${letters(34)}`],
    ['Hugging Face, with digits', `hf_${mixed(34)}`],
    ['SendGrid', `SG.${mixed(22)}.${mixed(43)}`],
    ['Twilio', `SK${hex(32)}`],
    ['DigitalOcean', `dop_v1_${hex(64)}`],
    ['Databricks', `dapi${hex(32)}`],
    ['Vault', `hvs.${mixed(30)}`],
    ['Groq', `gsk_${mixed(52)}`],
    ['xAI', `xai-${mixed(80)}`],
    ['Linear', `lin_api_${mixed(40)}`],
    ['Shopify', `shpat_${hex(32)}`],
    ['Docker', `dckr_pat_${mixed(27)}`],
    ['Atlassian', `ATATT3x${mixed(60)}`],
    ['Grafana', `glsa_${mixed(32)}_${hex(8)}`],
    ['Tailscale', `tskey-auth-${mixed(20)}`],
    ['Telegram', `123456789:AA${mixed(33)}`],
    ['Discord', `M${mixed(23)}.${mixed(6)}.${mixed(30)}`],
    ['age', `AGE-SECRET-KEY-1${capitals(58)}`],
    ['JWT, the shortest', `eyJ${mixed(8)}.eyJ${mixed(8)}.`],
    ['JWT', `eyJ${mixed(20)}.eyJ${mixed(40)}.${mixed(30)}`],
  ])('%s', (_name, secret) => {
    expect(redact(secret)).toBe('[redacted]')
    expect(redact(`say "${secret}" twice: ${secret}.`)).toBe('say "[redacted]" twice: [redacted].')
  })

  it.each([
    [`-pghp_${mixed(36)}`, '-p[redacted]'],
    [`foo_ghp_${mixed(36)}`, 'foo_[redacted]'],
    [`xAKIA${capitals(16)}`, 'x[redacted]'],
    [`mcp__AKIA${capitals(16)}__x`, 'mcp__[redacted]__x'],
    [`keysk-ant-api03-${mixed(40)}`, 'key[redacted]'],
    [`K=xsk-proj-${mixed(48)}`, 'K=x[redacted]'],
    [`tokenglpat-${mixed(20)}`, 'token[redacted]'],
    [`x_AIza${mixed(35)}`, 'x_[redacted]'],
    [`jwt_eyJ${mixed(20)}.eyJ${mixed(40)}.${mixed(30)}`, 'jwt_[redacted]'],
  ])('is found behind a word that it is glued to: %s', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })

  it('is found in a path and in a command', () => {
    expect(redact(`/tmp/${`ghp_${mixed(36)}`}/notes.md`)).toBe('/tmp/[redacted]/notes.md')
    expect(redact(`git clone https://${`ghp_${mixed(36)}`}@github.com/a/b`)).toBe(
      'git clone https://[redacted]@github.com/a/b',
    )
  })

  it('a private key goes whole, and also where its end was cut off', () => {
    const begin = '-----BEGIN RSA PRIVATE KEY-----'
    const end = '-----END RSA PRIVATE KEY-----'
    expect(redact(`a\n${begin}\n${mixed(64)}\n${mixed(64)}\n${end}\nb`)).toBe('a\n[redacted]\nb')
    expect(redact(`a\n${begin}\n${mixed(64)}\n${mixed(64)}`)).toBe('a\n[redacted]')
  })
})

describe('a credential that is known by what stands before it', () => {
  it.each([
    ['password=hunter2hunter2', 'password=[redacted]'],
    ['DB_PASSWORD=correct-horse', 'DB_PASSWORD=[redacted]'],
    ['export GITHUB_TOKEN=abc123def456', 'export GITHUB_TOKEN=[redacted]'],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG', 'AWS_SECRET_ACCESS_KEY=[redacted]'],
    ['{"api_key": "abcd-1234"}', '{"api_key": "[redacted]"}'],
    ['{\\"password\\": \\"s3cr3t!!\\"}', '{\\"password\\": \\"[redacted]\\"}'],
    ["clientSecret: 'q8w7e6r5'", "clientSecret: '[redacted]'"],
    ['const apiKey = "abcd1234efgh"', 'const apiKey = "[redacted]"'],
    ['secret: 9f8e7d6c5b', 'secret: [redacted]'],
    ['mysql --password hunter2222 -u root', 'mysql --password [redacted] -u root'],
    ['deploy --token=abcdef123456', 'deploy --token=[redacted]'],
    ['Authorization: Bearer abc.def-123456', 'Authorization: Bearer [redacted]'],
    ['-H "Authorization: Basic dXNlcjpwYXNz"', '-H "Authorization: Basic [redacted]"'],
    ['authorization: 0123456789', 'authorization: [redacted]'],
    ['sent with bearer abcdef0123456789abcd', 'sent with bearer [redacted]'],
    ['Set-Cookie: session=abcdef0123456789; Path=/', 'Set-Cookie: [redacted]'],
    ['postgres://app:s3cret@db.internal:5432/x', 'postgres://app:[redacted]@db.internal:5432/x'],
    ['redis://:hunter2@cache:6379', 'redis://:[redacted]@cache:6379'],
    ['https://x.test/blob?sv=2&sig=AbCdEf0123456%3D&se=1', 'https://x.test/blob?sv=2&sig=[redacted]&se=1'],
    ['https://x.test/cb?access_token=abcdef123&x=1', 'https://x.test/cb?access_token=[redacted]&x=1'],
    ['Endpoint=x;AccountKey=abcdefgh12345678==;', 'Endpoint=x;AccountKey=[redacted];'],
    ['curl -s -u admin:hunter2 https://x.test', 'curl -s -u admin:[redacted] https://x.test'],
    ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPx', 'aws_secret_access_key = [redacted]'],
    ['password = spHunter99', 'password = [redacted]'],
    ['password =spHunter99', 'password =[redacted]'],
    ['password= spHunter99', 'password= [redacted]'],
    ['db.password := goHunter99', 'db.password := [redacted]'],
    ['passwd = 40817263', 'passwd = [redacted]'],
    ['PGPASSWORD=pgHunter99 psql', 'PGPASSWORD=[redacted] psql'],
    ['DBPASSWORD=xHunter99', 'DBPASSWORD=[redacted]'],
    ['DB_PASSWORD2=xHunter99', 'DB_PASSWORD2=[redacted]'],
    ['SECRET_KEY_BASE=0123456789abcdef', 'SECRET_KEY_BASE=[redacted]'],
    ['{"dbPassword": "xHunter99"}', '{"dbPassword": "[redacted]"}'],
    ['mysql -pmyHunter99 shop', 'mysql -p[redacted] shop'],
    ['mysqldump -u root -pmyHunter99 shop', 'mysqldump -u root -p[redacted] shop'],
    ["mariadb -p'my Hunter' shop", "mariadb -p'[redacted]' shop"],
    ['sshpass -p hunter2 ssh host', 'sshpass -p [redacted] ssh host'],
    ['docker login -u me -p hunter2 x.test', 'docker login -u me -p [redacted] x.test'],
    ['nerdctl login -u me -p hunter2x', 'nerdctl login -u me -p [redacted]'],
    ['buildah login -p hunter2x x.test', 'buildah login -p [redacted] x.test'],
    ['oras login -p hunter2x x.test', 'oras login -p [redacted] x.test'],
    ['az acr login -n x -p hunter2x', 'az acr login -n x -p [redacted]'],
    ['password: correct-horse-battery-staple', 'password: [redacted]'],
    ['The db_passphrase: words-with-dashes, is set.', 'The db_passphrase: [redacted], is set.'],
    ['redis-cli -h cache -a hunter2 ping', 'redis-cli -h cache -a [redacted] ping'],
    ['openssl rsa -passin pass:hunter2 -in a', 'openssl rsa -passin pass:[redacted] -in a'],
  ])('%s', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })
})

describe('what is no credential stays', () => {
  it.each([
    'The token count rose to 155440, the password field is empty.',
    'max_tokens: 16000, output=1435, read: 140000',
    'const token = tokens[index]',
    'password: string',
    'password: min-length',
    'password: see-the-docs()',
    'password: user_given_password, shop.user.password',
    'plaza -p hunter2x',
    'token = readToken(line)',
    'API_KEY=$API_KEY npm test',
    'API_KEY=$'.concat('{API_KEY}'),
    'password=<your password>',
    'api_key: process.env.API_KEY',
    '--token "$TOKEN"',
    'export TOKEN=',
    'secret_key = os.environ["X"]',
    'commit 4f9d2c6a5b1e4f0a9c7d2a8e6b40d1013f9d2c6a',
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
    '3f9d2c6a-5b1e-4f0a-9c7d-2a8e6b40d101',
    'sk-learn-and-some-other-kebab-case-name',
    'task-runner-configuration-for-many-things',
    'src/auth/token-refresh/keychain-password-store.ts',
    'https://example.test:8080/path?key=1',
    'git@github.com:owner/repository.git',
    'http://user@host/path',
    'grep -rn "password" src/ | head -20',
    'the author: somebody, the key: a word',
    'Cookie: none',
    'toolu_01AbCdEfGhIjKlMnOpQrStUv',
    'msg_01AbCdEfGhIjKlMnOpQrStUv',
    'call_Ef4JjxErSw38zp7WXzEo0UXm',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ',
    'describe("accessToken", () => {})',
    'if (password === undefined) return',
    'token: AsyncIterable<Token>',
    'OLDPWD=/home/user/shop PWD=/home/user',
    'password = readPassword1(line)',
    'token = tokens2[index]',
    'password === stored1Password',
    'secret = config.secrets.sha256',
    'token => token.value1',
    'max_tokens = 16000, total_tokens = 12k5678',
    'mysql -p -u root shop',
    'mysql -P3306 -p"$PASSWORD" shop',
    'docker run -p 8080:80 image',
    'task-proj-configuration-for-many-things',
    'mcp__github__create_pull_request_review_comment',
  ])('%s', (text) => {
    expect(redact(text)).toBe(text)
  })
})

it('is done once: what was redacted is not touched again', () => {
  const text = `password=abcdef123 Authorization: Bearer ${mixed(30)} postgres://a:b12345@c "token": "x9y8z7"`
  expect(redact(redact(text))).toBe(redact(text))
})

it('takes no more than a moment for texts that lead patterns astray', () => {
  const astray = [
    'a-'.repeat(20_000),
    'token_'.repeat(10_000),
    `curl ${'-u '.repeat(10_000)}`,
    'https://a:'.repeat(5_000),
    'mysql '.repeat(5_000),
    'passwor'.repeat(5_000),
    'password = '.repeat(3_000),
  ]
  expect(astray.map(redact)).toEqual(astray)
})

it('a signature is removed from a text without any word that announces a credential', () => {
  expect(redact(`/callback?code=${mixed(20)}`)).toBe('/callback?code=[redacted]')
  expect(redact(`SharedAccessSignature=${mixed(40)}`)).toBe('SharedAccessSignature=[redacted]')
})

describe('the beginning of a long text', () => {
  const lines = (count: number): string => 'const value = list.map((item) => item.name)\n'.repeat(count)
  it.each([
    ['without a credential', lines(300)],
    ['with a credential in front', `password = "${mixed(20)}"\n${lines(300)}`],
    [
      'with a private key that fills the part read',
      `-----BEGIN PRIVATE KEY-----\n${`${mixed(64)}\n`.repeat(200)}`,
    ],
    [
      'with a private key that ends behind the part read',
      `-----BEGIN PRIVATE KEY-----\n${`${mixed(64)}\n`.repeat(100)}-----END PRIVATE KEY-----\n${lines(300)}`,
    ],
    ['whose name and value are far apart', `password:${'\n'.repeat(5_000)}"${mixed(20)}"\n${lines(300)}`],
    ['on one line', lines(300).replaceAll('\n', ' ')],
    ['that is mostly white space', `${'a\n\n\n\n\n\n\n\n\n\n'.repeat(1_000)}${lines(10)}`],
  ])('%s is that of the whole redacted text', (_, text) => {
    const whole = redact(text).replace(/\s+/g, ' ').trim()
    expect(toRedactedPreview(text, 300)).toBe(whole.slice(0, 300))
  })
})

it('finds a credential without a cue wherever it stands, in a short and in a long text', () => {
  const secret = `ghp_${'aB3d'.repeat(9)}`
  for (const words of ['a b ', 'some words. '.repeat(5_000)])
    for (let place = 0; place < 40; place += 1) {
      const [before, after] = [`${words}${'.'.repeat(place)} `, ` ${'.'.repeat(40 - place)}`]
      expect(redact(before + secret + after)).toBe(`${before}[redacted]${after}`)
      expect(redact(`${before}[redacted]${after}`)).toBe(`${before}[redacted]${after}`)
    }
})
