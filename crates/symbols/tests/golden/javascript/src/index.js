export { Cart, default as Checkout } from './cart.js';
export * from "./store";
export * as money from './money.mjs';
import React, { useState } from 'react';
import './side-effect.css';

export default function App({ user, cart: { items } }, [first, ...others] = [], options = {}) {
  const onClick = async (event) => formatMoney(event);
  return <Cart items={items} onClick={onClick} />;
}

export const VERSION = '1.0', BUILD = 7;
const LOCAL_LIMIT = 5;
let counter = 0;
