import { float, joined, number, part, type Field } from './protobuf.ts'
import type { Tensor } from './safetensors.ts'

const elementTypes: Readonly<Record<string, number>> = { F32: 1, I64: 7, F16: 10 }

/** A graph of ONNX in the making: each call adds an operation and answers the name of what comes out of it. */
export class OnnxGraph {
  readonly #nodes: Field[] = []
  readonly #initial: Field[] = []
  readonly #inputs: Field[] = []
  #names = 0

  /** A list of whole numbers that is given with each run. */
  input(name: string): string {
    this.#inputs.push(part(11, value(name, elementTypes.I64 ?? 0, ['length'])))
    return name
  }

  /** What is known before: numbers of half the width are made whole. */
  tensor({ dtype, shape, bytes }: Tensor): string {
    const name = this.#name()
    const type = elementTypes[dtype]
    if (type === undefined) throw new Error(`tensors of ${dtype} are not known`)
    this.#initial.push(part(5, joined(...shape.map((size) => number(1, size)), number(2, type), part(8, name), part(9, bytes))))
    return dtype === 'F16' ? this.add('Cast', [name], { to: 1 }) : name
  }

  numbers(values: readonly number[], shape: number[] = [values.length]): string {
    return this.tensor({ dtype: 'I64', shape, bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer) })
  }

  scalar(single: number): string {
    return this.tensor({ dtype: 'F32', shape: [], bytes: new Uint8Array(Float32Array.of(single).buffer) })
  }

  add(operation: string, inputs: readonly string[], attributes: Readonly<Record<string, number | readonly number[] | { float: number }>> = {}): string {
    const output = this.#name()
    const described = Object.entries(attributes).map(([name, given]) => part(5, attribute(name, given)))
    this.#nodes.push(part(1, joined(...inputs.map((input) => part(1, input)), part(2, output), part(4, operation), ...described)))
    return output
  }

  /** The model whose only output this is: a list of so many numbers. */
  model(output: string, size: number): Uint8Array {
    const graph = joined(...this.#nodes, part(2, 'graph'), ...this.#initial, ...this.#inputs, part(12, value(output, 1, [size])))
    return joined(number(1, 9), part(8, joined(part(1, ''), number(2, 20))), part(7, graph))
  }

  #name(): string {
    this.#names += 1
    return `v${this.#names}`
  }
}

function value(name: string, type: number, shape: ReadonlyArray<number | string>): Uint8Array {
  const sizes = shape.map((size) => part(1, typeof size === 'number' ? number(1, size) : part(2, size)))
  return joined(part(1, name), part(2, part(1, joined(number(1, type), part(2, joined(...sizes))))))
}

function attribute(name: string, given: number | readonly number[] | { float: number }): Uint8Array {
  if (typeof given === 'number') return joined(part(1, name), number(3, given), number(20, 2))
  if ('float' in given) return joined(part(1, name), float(2, given.float), number(20, 1))
  return joined(part(1, name), ...given.map((one) => number(8, one)), number(20, 7))
}
