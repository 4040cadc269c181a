/**
 * The filter of system calls for sandboxed commands on Linux, as a program for the kernel's classic packet filter, which `bwrap --seccomp`
 * reads. It blocks what namespaces leave open: sockets of local services, which are files that a read-only mount does not block; keyrings
 * of the kernel; and input into the user's terminal.
 */

interface SystemCalls {
  /** The kernel's number for the architecture. */
  readonly architecture: number
  readonly socket: number
  readonly socketpair: number
  readonly ioctl: number
  /** Calls that always fail. */
  readonly closed: readonly number[]
}

/** `io_uring_setup` can open sockets without the filter noticing. The other calls read and write keyrings. */
const IO_URING_SETUP = 425

const SYSTEM_CALLS: Readonly<Record<string, SystemCalls>> = {
  x64: {
    architecture: 0xc000003e,
    socket: 41,
    socketpair: 53,
    ioctl: 16,
    closed: [248, 249, 250, IO_URING_SETUP],
  },
  arm64: {
    architecture: 0xc00000b7,
    socket: 198,
    socketpair: 199,
    ioctl: 29,
    closed: [217, 218, 219, IO_URING_SETUP],
  },
}

/** Allowed socket families: IPv4, IPv6, and the one that lists network interfaces. */
const OPEN_FAMILIES = [2, 10, 16]
/** A pair of datagram sockets could later be connected to a service; pairs of other types cannot. */
const SOCK_DGRAM = 2
const TYPE_MASK = 0xf
/** Requests of `ioctl` that insert input into a terminal: TIOCSTI and TIOCLINUX. */
const TERMINAL_REQUESTS = [0x5412, 0x541c]

// Places in the data that the kernel passes to the filter: the number of the call, the architecture, the low half of an
// argument (both architectures are little-endian, and the kernel reads no more than that half of these arguments).
const CALL = 0
const ARCHITECTURE = 4
const argument = (index: number): number => 16 + 8 * index

const LOAD = 0x20
const AND = 0x54
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_AT_LEAST = 0x35
const RETURN = 0x06
const ALLOW = 0x7fff0000
/** The call fails with EPERM. */
const FAIL = 0x00050001
const END_PROCESS = 0x80000000

/** Calls of the x32 interface of x64 processors have this bit. */
const X32_BIT = 0x40000000

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number]

/** Returns the filter for a processor, named as in Node; null if there is no filter for it. */
export function createSeccompFilter(processor: string): Buffer | null {
  const calls = Object.hasOwn(SYSTEM_CALLS, processor) ? SYSTEM_CALLS[processor] : undefined
  if (calls === undefined) return null
  const { architecture, socket, socketpair, ioctl, closed } = calls
  const program: readonly Instruction[] = [
    [LOAD, ARCHITECTURE],
    [JUMP_IF_EQUAL, architecture, 1, 0],
    // 32-bit programs have other numbers for all calls, so they are ended.
    [RETURN, END_PROCESS],
    [LOAD, CALL],
    [JUMP_IF_AT_LEAST, X32_BIT, 0, 1],
    [RETURN, FAIL],
    ...closed.flatMap((number): Instruction[] => [
      [JUMP_IF_EQUAL, number, 0, 1],
      [RETURN, FAIL],
    ]),
    ...inCall(socket, [
      [LOAD, argument(0)],
      ...OPEN_FAMILIES.flatMap((family): Instruction[] => [
        [JUMP_IF_EQUAL, family, 0, 1],
        [RETURN, ALLOW],
      ]),
      [RETURN, FAIL],
    ]),
    ...inCall(socketpair, [
      [LOAD, argument(1)],
      [AND, TYPE_MASK],
      [JUMP_IF_EQUAL, SOCK_DGRAM, 0, 1],
      [RETURN, FAIL],
      [RETURN, ALLOW],
    ]),
    ...inCall(ioctl, [
      [LOAD, argument(1)],
      ...TERMINAL_REQUESTS.flatMap((request): Instruction[] => [
        [JUMP_IF_EQUAL, request, 0, 1],
        [RETURN, FAIL],
      ]),
      [RETURN, ALLOW],
    ]),
    [RETURN, ALLOW],
  ]
  return Buffer.concat(program.map(encodeInstruction))
}

/** Returns instructions that run only for the call with this number. They must end with a return. */
function inCall(number: number, body: readonly Instruction[]): readonly Instruction[] {
  return [[JUMP_IF_EQUAL, number, 0, body.length], ...body]
}

function encodeInstruction([code, value, ifTrue = 0, ifFalse = 0]: Instruction): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(ifTrue, 2)
  bytes.writeUInt8(ifFalse, 3)
  bytes.writeUInt32LE(value, 4)
  return bytes
}
