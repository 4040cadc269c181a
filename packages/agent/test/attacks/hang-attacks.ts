/** Attempts of a repository, a model or a web page to hang the agent, or to have it fetch from this machine, as data. */

export interface HangClass {
  readonly name: string
  /** What is promised about the class, and by which wall. */
  readonly promise: string
  readonly expected: 'refused' | 'harmless'
  readonly attempts: readonly string[]
}

/** Each is tried as a line of an ignore file, as a glob of a tool, and in rules for paths, commands and addresses. */
export const PATTERNS: readonly HangClass[] = [
  {
    name: 'patterns with much to try',
    promise: 'Matching takes at most pattern times path.',
    expected: 'harmless',
    attempts: [
      '*a'.repeat(24),
      '*a'.repeat(400),
      '?*'.repeat(400),
      '**/'.repeat(300),
      '**/a/'.repeat(150),
      `${'a*'.repeat(300)}b`,
      '[a-z]*'.repeat(150),
      '[!b]*'.repeat(150),
      `${'*'.repeat(900)}b`,
      '{a,b}'.repeat(8),
      '{a,{a,{a,{a,b}}}}'.repeat(2),
    ],
  },
  {
    name: 'patterns that are broken off',
    promise: 'A pattern that is no pattern stands for itself, or matches nothing.',
    expected: 'harmless',
    attempts: [
      '\\'.repeat(4),
      '\\'.repeat(999),
      '['.repeat(900),
      '[a-'.repeat(300),
      '[[:'.repeat(300),
      '[[:alpha:'.repeat(100),
      '{'.repeat(900),
      '{a,'.repeat(300),
      '}'.repeat(900),
      '!('.repeat(400),
      '+(a|'.repeat(200),
      '(((((a*)*)*)*)*)*b',
      '(a+)+$',
    ],
  },
  {
    name: 'patterns that are too long',
    promise:
      'A rule with one is refused when it is read, a tool call when it is made; a line of an ignore file matches nothing.',
    expected: 'refused',
    attempts: [
      'a'.repeat(1_001),
      '*a'.repeat(100_000),
      '{a,b}'.repeat(30),
      `{${Array.from({ length: 320 }, (_, number) => number.toString(36)).join(',')}}`,
    ],
  },
]

/** Hosts of web pages. */
export const ADDRESSES: readonly HangClass[] = [
  {
    name: 'addresses of this machine and its networks',
    promise: 'WebFetch connects only to public addresses, and only to those that it has checked.',
    expected: 'refused',
    attempts: [
      ...['127.0.0.1', '127.1.2.3', '0.0.0.0', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1'],
      ...['169.254.169.254', '168.63.129.16', '192.0.0.192', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
      ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::FFFF:7F00:1', '0:0:0:0:0:ffff:a9fe:a9fe'],
      ...['::ffff:0:127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001::1', '2001:db8::1'],
      ...[
        '2002:7f00:1::',
        '3fff::1',
        'fc00::1',
        'fd00:ec2::254',
        'fe80::1',
        'fe80::1%eth0',
        'fec0::1',
        'ff02::1',
      ],
      ...['', 'localhost', '0x7f.1', '2130706433'],
    ],
  },
  {
    name: 'public addresses',
    promise: 'They are fetched.',
    expected: 'harmless',
    attempts: ['8.8.8.8', '93.184.216.34', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8'],
  },
]
