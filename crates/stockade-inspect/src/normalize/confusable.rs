//! Letters of other scripts that look like Latin ones.
//!
//! A hand-picked part of Unicode's confusables (UTS #39): the letters that occur in attacks,
//! already lower-case. Compatibility forms (mathematical, full-width, circled) need no entry,
//! because compatibility decomposition has turned them into Latin before.

/// The Latin letter that a character is taken for, if there is one.
pub(crate) const fn latin(character: char) -> Option<u8> {
    Some(match character {
        'а' | 'α' | 'ɑ' | 'ᴀ' | 'ạ' | 'ꭺ' => b'a',
        'в' | 'ʙ' | 'ь' | 'β' | 'ƅ' => b'b',
        'с' | 'ϲ' | 'ᴄ' | 'ƈ' | 'ⅽ' => b'c',
        'ԁ' | 'ᴅ' | 'ɗ' | 'đ' => b'd',
        'е' | 'ε' | 'є' | 'ᴇ' | 'ҽ' | 'ɛ' | 'ǝ' => b'e',
        'ꜰ' | 'ƒ' => b'f',
        'ɡ' | 'ɢ' | 'ց' | 'ǥ' => b'g',
        'һ' | 'ʜ' | 'н' | 'հ' | 'ħ' => b'h',
        'і' | 'ι' | 'ɪ' | 'ı' | 'ӏ' | 'ɩ' | 'ɨ' => b'i',
        'ј' | 'ᴊ' | 'ϳ' => b'j',
        'к' | 'κ' | 'ᴋ' | 'ƙ' => b'k',
        'ʟ' | 'ⅼ' | 'ł' | 'ɭ' => b'l',
        'м' | 'ᴍ' | 'ɱ' => b'm',
        'п' | 'ɴ' | 'η' | 'ո' | 'ռ' | 'ɲ' => b'n',
        'о' | 'ο' | 'ᴏ' | 'օ' | 'σ' | 'ө' | 'ø' | 'ɵ' => b'o',
        'р' | 'ρ' | 'ᴘ' | 'ƿ' => b'p',
        'ԛ' | 'զ' | 'ɋ' => b'q',
        'г' | 'ʀ' | 'ɾ' | 'ꭇ' => b'r',
        'ѕ' | 'ꜱ' | 'ʂ' | 'ƨ' => b's',
        'т' | 'τ' | 'ᴛ' | 'ƭ' | 'ŧ' => b't',
        'υ' | 'ᴜ' | 'ս' | 'ʋ' => b'u',
        'ν' | 'ѵ' | 'ᴠ' => b'v',
        'ԝ' | 'ѡ' | 'ᴡ' | 'ω' | 'ա' => b'w',
        'х' | 'χ' | 'ҳ' => b'x',
        'у' | 'ү' | 'γ' | 'ʏ' | 'ყ' => b'y',
        'ᴢ' | 'ʐ' | 'ƶ' => b'z',
        _ => return None,
    })
}

/// The letter that a digit or sign stands for in "leet" spelling.
pub(crate) const fn leet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'0' => b'o',
        b'1' | b'!' | b'|' => b'i',
        b'3' => b'e',
        b'4' | b'@' => b'a',
        b'5' | b'$' => b's',
        b'7' | b'+' => b't',
        b'8' => b'b',
        b'9' => b'g',
        _ => return None,
    })
}
