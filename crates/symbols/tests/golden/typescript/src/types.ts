import type { Readable } from 'node:stream';
import fs = require('fs');

export interface Clock<T = number> extends Base, Disposable {
  readonly now: T;
  zone?: string;
  tick(by?: number): void;
  new (x: number): Clock;
  [key: string]: unknown;
}

export type Handler<E> = (event: E) => Promise<void>;
export type Props = { title: string; onClose?(): void };
type Union = 'a' | 'b';

export enum Level { Low, High = 'high' }
export declare const enum Flag { On = 1 }
declare module 'virtual' { export function load(id: string): Clock; }
export namespace Deep.Inner { export const value = 1; export function reach() {} }
declare function ambient(a: number): asserts a is 1;
export abstract class Shape<T extends Clock> implements Disposable, Readable<T> {
  static instances = 0;
  protected readonly name!: string;
  handler: Handler<T> = async (event) => { settle(event); };
  constructor(private readonly clock: Clock, public size?: number, label: string = 'x') { super(); }
  abstract area(scale?: number): number;
  get perimeter(): number { return 1; }
  async load<K>(this: Shape<T>, key: K, ...rest: string[]): Promise<Map<K, { deep: string }>> { return settle(key); }
  @decorated() private hidden?(): void {}
}

export function settle(value: string): string;
export function settle(value: number): number;
export function settle(value: any, options: { strict: boolean } = { strict: true }): any {
  return value;
}

export const curry = <A, B>(a: A) => (b: B): [A, B] => [a, b];
export const typed: Handler<string> = async (event): Promise<void> => {};
export let mutable = 1;
