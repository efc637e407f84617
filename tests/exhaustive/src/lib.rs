//! This package has tests only; its manifest says why.
